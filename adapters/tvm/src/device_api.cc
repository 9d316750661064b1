/* TVM's device API for Vulkan: every method is a call of <dlhal/dlhal.h>. */
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>
#include <tvm/runtime/device_api.h>

#include "current_device.h"
#include "registry.h"
#include "status.h"

namespace dlhal_tvm {

using tvm::Device;
using tvm::ffi::Any;
using tvm::ffi::Optional;
using tvm::ffi::String;
using tvm::runtime::DeviceAttrKind;

/* A number as it is; what is none is asked for as text; nothing for what the driver does not tell.
 */
template <typename GetText>
static Any answer(const DlhalValue &value, GetText get_text) {
    switch (value.type) {
        case DLHAL_VALUE_BOOL:
            return value.value.as_int != 0;
        case DLHAL_VALUE_INT:
            return value.value.as_int;
        case DLHAL_VALUE_UINT:
            return static_cast<int64_t>(value.value.as_uint);
        default: {
            std::string known = text(get_text);
            if (known.empty()) return nullptr;
            return String(known);
        }
    }
}

static Any target_property(Device device, const String &name) {
    DlhalValue value;
    DlhalStatus status = dlhal_device_get_target_property(device, name.c_str(), &value);
    /* As TVM's own runtime does for a name that it does not know. */
    if (status == DLHAL_STATUS_NOT_FOUND) {
        CurrentDevice::set(device);
        return nullptr;
    }
    check(status);
    return answer(value, [&](char *buffer, size_t capacity, size_t *needed) {
        return dlhal_device_get_target_property_string(device, name.c_str(), buffer, capacity,
                                                       needed);
    });
}

class VulkanDeviceAPI final : public tvm::runtime::DeviceAPI {
   public:
    /* Never freed: tensors may be freed at exit after every destructor. */
    static VulkanDeviceAPI *Global() {
        static auto *api = new VulkanDeviceAPI();
        return api;
    }

    void SetDevice(Device device) final { CurrentDevice::set(device); }

    void GetAttr(Device device, DeviceAttrKind kind, Any *result) final {
        const auto attr = static_cast<DlhalDeviceAttr>(kind);
        DlhalValue value;
        check(dlhal_device_get_attr(device, attr, &value));
        *result = answer(value, [&](char *buffer, size_t capacity, size_t *needed) {
            return dlhal_device_get_attr_string(device, attr, buffer, capacity, needed);
        });
    }

    void GetTargetProperty(Device device, const std::string &name, Any *result) final {
        *result = target_property(device, name);
    }

    void *AllocDataSpace(Device device, size_t nbytes, size_t alignment,
                         DLDataType type_hint) final {
        void *address = nullptr;
        check(dlhal_alloc_data_space(device, nbytes, alignment, type_hint, &address));
        return address;
    }

    void *AllocDataSpace(Device device, int ndim, const int64_t *shape, DLDataType dtype,
                         Optional<String> mem_scope) final {
        void *address = nullptr;
        check(dlhal_alloc_data_space_with_scope(
            device, ndim, shape, dtype, mem_scope ? mem_scope.value().c_str() : nullptr, &address));
        return address;
    }

    void FreeDataSpace(Device device, void *address) final {
        report(dlhal_free_data_space(device, address));
    }

    void *AllocWorkspace(Device device, size_t nbytes, DLDataType type_hint) final {
        void *address = nullptr;
        check(dlhal_alloc_workspace(device, nbytes, type_hint, &address));
        return address;
    }

    void FreeWorkspace(Device device, void *address) final {
        report(dlhal_free_workspace(device, address));
    }

    void CopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream) final {
        check(dlhal_copy_data_from_to(from, to, static_cast<DlhalStream>(stream)));
    }

    TVMStreamHandle CreateStream(Device device) final {
        DlhalStream stream = nullptr;
        check(dlhal_stream_create(device, &stream));
        return stream;
    }

    void FreeStream(Device device, TVMStreamHandle stream) final {
        report(dlhal_stream_free(device, static_cast<DlhalStream>(stream)));
    }

    void StreamSync(Device device, TVMStreamHandle stream) final {
        check(dlhal_stream_sync(device, static_cast<DlhalStream>(stream)));
    }

    void SyncStreamFromTo(Device device, TVMStreamHandle from, TVMStreamHandle to) final {
        check(dlhal_sync_stream_from_to(device, static_cast<DlhalStream>(from),
                                        static_cast<DlhalStream>(to)));
    }

    /* An address of dlhal may be added to and resolves wherever it lies in an allocation. */
    bool SupportsDevicePointerArithmeticsOnHost() final { return true; }

   protected:
    void CopyDataFromTo(const void *from, size_t from_offset, void *to, size_t to_offset,
                        size_t nbytes, Device from_device, Device to_device, DLDataType,
                        TVMStreamHandle stream) final {
        check(dlhal_copy_bytes(from, from_offset, from_device, to, to_offset, to_device, nbytes,
                               static_cast<DlhalStream>(stream)));
    }
};

TVM_FFI_STATIC_INIT_BLOCK() {
    define("device_api.vulkan", [] { return static_cast<void *>(VulkanDeviceAPI::Global()); });
    define("device_api.vulkan.get_target_property", target_property);
    define("dlhal.version", [] { return String(dlhal_version_string()); });
    define("dlhal.diagnose", [] { return String(text(dlhal_diagnose)); });
}

}  // namespace dlhal_tvm
