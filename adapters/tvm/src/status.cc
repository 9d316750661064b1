#include "status.h"

#include <tvm/ffi/error.h>
#include <tvm/runtime/logging.h>

namespace dlhal_tvm {

/* The name of the Python exception that a status becomes. */
static const char *kind(DlhalStatus status) {
    switch (status) {
        case DLHAL_STATUS_INVALID_ARGUMENT:
        case DLHAL_STATUS_NOT_FOUND:
        case DLHAL_STATUS_DATA_LOSS:
            return "ValueError";
        case DLHAL_STATUS_OUT_OF_MEMORY:
            return "MemoryError";
        case DLHAL_STATUS_INTERNAL:
            return "InternalError";
        default:
            return "RuntimeError";
    }
}

void raise(DlhalStatus status) {
    /* No backtrace: the message says what to do, and these frames tell a user nothing. */
    throw tvm::ffi::Error(kind(status), dlhal_last_error_message(), "");
}

void report(DlhalStatus status) noexcept {
    if (status == DLHAL_STATUS_OK || status == DLHAL_STATUS_FAILED_PRECONDITION) return;
    LOG(WARNING) << "Vulkan: " << dlhal_last_error_message();
}

}  // namespace dlhal_tvm
