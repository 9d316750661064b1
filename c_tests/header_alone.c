/* Nothing but the header, twice; compiled as C and as C++. */
#include <dlhal/dlhal.h>
/* The second time is meant. */
/* clang-format off */
#include <dlhal/dlhal.h>
/* clang-format on */

/* The types of DLPack are there, whoever declares them. */
static DLTensor tensor;
static DLManagedTensor *legacy;
static DLManagedTensorVersioned *versioned;

int main(void) {
    DlhalStatus status = DLHAL_STATUS_OK;
    tensor.device.device_type = kDLVulkan;
    (void)legacy;
    (void)versioned;
    return (int)status + (tensor.data != (void *)0);
}
