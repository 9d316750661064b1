/* The device that TVM chose for the calling thread. */
#ifndef DLHAL_TVM_CURRENT_DEVICE_H_
#define DLHAL_TVM_CURRENT_DEVICE_H_

#include <dlhal/dlhal.h>

#include "status.h"

namespace dlhal_tvm {

/**
 * TVM chooses the device anew before each launch, so the choice is kept here, where looking at it
 * costs nothing; the library is told of a change, and refuses a device that does not exist.
 */
class CurrentDevice {
   public:
    static DLDevice get() { return {kDLVulkan, index_}; }

    static void set(DLDevice device) {
        if (is_set_ && device.device_type == kDLVulkan && device.device_id == index_) return;
        check(dlhal_set_device(device));
        index_ = device.device_id;
        is_set_ = true;
    }

   private:
    static inline thread_local int index_ = 0;
    static inline thread_local bool is_set_ = false;
};

}  // namespace dlhal_tvm

#endif  // DLHAL_TVM_CURRENT_DEVICE_H_
