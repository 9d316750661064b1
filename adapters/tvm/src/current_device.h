/* The device that TVM chose for the calling thread. */
#ifndef DLHAL_TVM_CURRENT_DEVICE_H_
#define DLHAL_TVM_CURRENT_DEVICE_H_

#include <dlhal/dlhal.h>

#include <optional>

#include "status.h"

namespace dlhal_tvm {

/**
 * TVM chooses the device anew before each launch, so the choice is kept here, where looking at it
 * costs nothing; the library is told of a change, and refuses a device that does not exist.
 */
class CurrentDevice {
   public:
    static DLDevice get() { return {kDLVulkan, index_.value_or(0)}; }

    static void set(DLDevice device) {
        if (device.device_type == kDLVulkan && device.device_id == index_) return;
        check(dlhal_set_device(device));
        index_ = device.device_id;
    }

   private:
    static inline thread_local std::optional<int> index_;
};

}  // namespace dlhal_tvm

#endif  // DLHAL_TVM_CURRENT_DEVICE_H_
