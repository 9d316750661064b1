/* TVM's timer for Vulkan devices: the device's own time for a stretch of a stream's work. */
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include "registry.h"
#include "status.h"

namespace dlhal_tvm {

/* TVM's abstract timer, as include/tvm/runtime/timer.h of TVM 0.25 to 0.27 has it. That header
 * includes ones that the wheels lack. The order of the virtual functions is what counts. */
class TimerNode : public tvm::ffi::Object {
   public:
    virtual void Start() = 0;
    virtual void Stop() = 0;
    virtual int64_t SyncAndGetElapsedNanos() = 0;
    virtual ~TimerNode() {}

    static constexpr const bool _type_mutable = true;
    TVM_FFI_DECLARE_OBJECT_INFO("runtime.TimerNode", TimerNode, tvm::ffi::Object);
};

class VulkanTimerNode final : public TimerNode {
   public:
    explicit VulkanTimerNode(DLDevice device) : device_(device) {
        check(dlhal_timer_create(device, &timer_));
    }
    ~VulkanTimerNode() { report(dlhal_timer_free(timer_)); }

    void Start() final {
        stream_ =
            static_cast<DlhalStream>(TVMFFIEnvGetStream(device_.device_type, device_.device_id));
        check(dlhal_timer_start(timer_, stream_));
    }
    void Stop() final { check(dlhal_timer_stop(timer_, stream_)); }
    int64_t SyncAndGetElapsedNanos() final {
        uint64_t nanoseconds = 0;
        check(dlhal_timer_elapsed(timer_, UINT64_MAX, &nanoseconds));
        return static_cast<int64_t>(nanoseconds);
    }

    TVM_FFI_DECLARE_OBJECT_INFO_FINAL("dlhal.VulkanTimerNode", VulkanTimerNode, TimerNode);

   private:
    DLDevice device_;
    DlhalTimer timer_ = nullptr;
    /* The current stream at the start, on which it also stops. */
    DlhalStream stream_ = nullptr;
};

class Timer : public tvm::ffi::ObjectRef {
   public:
    TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Timer, tvm::ffi::ObjectRef, TimerNode);
};

TVM_FFI_STATIC_INIT_BLOCK() {
    /* The name in TVM 0.25 to 0.27, and the one before. */
    const auto make = [](DLDevice device) {
        return Timer(tvm::ffi::make_object<VulkanTimerNode>(device));
    };
    define("runtime.timer.vulkan", make);
    define("profiling.timer.vulkan", make);
}

}  // namespace dlhal_tvm
