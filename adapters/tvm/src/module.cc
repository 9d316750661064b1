/* TVM's runtime module of kind `vulkan`, around a module of dlhal. */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "current_device.h"
#include "function_info.h"
#include "registry.h"
#include "status.h"

namespace dlhal_tvm {

using tvm::ffi::Any;
using tvm::ffi::AnyView;
using tvm::ffi::Array;
using tvm::ffi::Bytes;
using tvm::ffi::Function;
using tvm::ffi::Map;
using tvm::ffi::Module;
using tvm::ffi::Optional;
using tvm::ffi::PackedArgs;
using tvm::ffi::String;

/* An argument of a call, as the library takes it. */
static DlhalValue value_of(const AnyView &argument, int index) {
    const TVMFFIAny any = argument.CopyToTVMFFIAny();
    switch (any.type_index) {
        case kTVMFFIInt:
            return dlhal_int(any.v_int64);
        case kTVMFFIBool: {
            DlhalValue value = dlhal_int(any.v_int64);
            value.type = DLHAL_VALUE_BOOL;
            return value;
        }
        case kTVMFFIFloat:
            return dlhal_float(any.v_float64);
        case kTVMFFINone:
            return dlhal_address(nullptr);
        case kTVMFFIOpaquePtr:
            return dlhal_address(any.v_ptr);
        case kTVMFFIDLTensorPtr:
            return dlhal_tensor(static_cast<DLTensor *>(any.v_ptr));
        case kTVMFFITensor:
            return dlhal_tensor(TVMFFITensorGetDLTensorPtr(any.v_obj));
        default:
            TVM_FFI_THROW(TypeError)
                << "argument " << index << " of a kernel is " << argument.GetTypeKey()
                << "; pass a tensor, an address or a number";
            TVM_FFI_UNREACHABLE();
    }
}

/* Calls body with the arguments, which are on the stack up to a number that most kernels keep. */
template <typename Body>
static void with_values(PackedArgs args, Body body) {
    constexpr int on_stack = 32;
    const int count = args.size();
    DlhalValue few[on_stack];
    std::vector<DlhalValue> many(count > on_stack ? count : 0);
    DlhalValue *values = count > on_stack ? many.data() : few;
    for (int i = 0; i < count; i++) values[i] = value_of(args[i], i);
    body(values, static_cast<size_t>(count));
}

/* A kernel: launched on the thread's current device, on TVM's current stream of it. */
class Kernel {
   public:
    explicit Kernel(DlhalFunction function)
        : function_(function, [](DlhalFunction f) { report(dlhal_function_free(f)); }) {}

    void operator()(PackedArgs args, Any *) const {
        const DLDevice device = CurrentDevice::get();
        void *stream = TVMFFIEnvGetStream(device.device_type, device.device_id);
        with_values(args, [&](const DlhalValue *values, size_t count) {
            check(dlhal_function_launch(function_.get(), device, static_cast<DlhalStream>(stream),
                                        values, count));
        });
    }

   private:
    std::shared_ptr<std::remove_pointer_t<DlhalFunction>> function_;
};

class VulkanModuleObj final : public tvm::ffi::ModuleObj {
   public:
    explicit VulkanModuleObj(DlhalModule module) : module_(module) {}
    ~VulkanModuleObj() { report(dlhal_module_free(module_)); }

    const char *kind() const final { return "vulkan"; }

    int GetPropertyMask() const final { return Module::kBinarySerializable | Module::kRunnable; }

    Optional<Function> GetFunction(const String &name) final {
        DlhalFunction function = nullptr;
        DlhalStatus status = dlhal_module_get_function(module_, name.c_str(), &function);
        if (status == DLHAL_STATUS_NOT_FOUND) return std::nullopt;
        check(status);
        return Function::FromPacked(Kernel(function));
    }

    void WriteToFile(const String &path, const String &) const final {
        check(dlhal_module_save_to_file(module_, path.c_str(), nullptr));
    }

    Array<String> GetWriteFormats() const final { return {"vulkan"}; }

    Bytes SaveToBytes() const final {
        return Bytes(bytes([&](char *buffer, size_t capacity, size_t *needed) {
            return dlhal_module_save_to_bytes(module_, nullptr, buffer, capacity, needed);
        }));
    }

    String InspectSource(const String &format) const final {
        return String(text([&](char *buffer, size_t capacity, size_t *needed) {
            return dlhal_module_get_source(module_, nullptr, format.c_str(), buffer, capacity,
                                           needed);
        }));
    }

   private:
    DlhalModule module_;
};

static Module wrap(DlhalModule module) {
    return Module(tvm::ffi::make_object<VulkanModuleObj>(module));
}

static Module load_from_bytes(const Bytes &bytes) {
    DlhalModule module = nullptr;
    check(dlhal_module_load_from_bytes(bytes.data(), bytes.size(), &module));
    return wrap(module);
}

/* TVM passes the format that it took from the name; the library finds it in the file. */
static Module load_from_file(const String &path, const String &) {
    DlhalModule module = nullptr;
    check(dlhal_module_load_from_file(path.c_str(), &module));
    return wrap(module);
}

/* What TVM's own code generator for Vulkan makes, as TVM 0.24 and newer pass it on. */
static Module create(Map<String, Bytes> shaders, String, Map<String, FunctionInfo> signatures,
                     Map<String, String>) {
    /* A shader is a flag of 32 bits, a count of 64 bits, and that many words of SPIR-V. */
    constexpr size_t shader_head = 12;
    struct Kernel {
        FunctionInfo info;
        Bytes shader;
        std::vector<DLDataType> types;
        std::vector<std::string> tags;
        std::vector<const char *> tag_pointers;
    };
    std::vector<Kernel> kernels;
    for (const auto &[name, info] : signatures) {
        auto shader = shaders.find(name);
        if (shader == shaders.end() || (*shader).second.size() < shader_head) {
            TVM_FFI_THROW(ValueError) << "kernel `" << name << "` has no shader";
        }
        Kernel kernel{info, (*shader).second, {}, {}, {}};
        kernel.types.assign(info->arg_types.begin(), info->arg_types.end());
        for (const String &tag : info->launch_param_tags) kernel.tags.emplace_back(tag);
        for (const auto &tag : kernel.tags) kernel.tag_pointers.push_back(tag.c_str());
        kernels.push_back(std::move(kernel));
    }
    std::vector<DlhalKernelDesc> descriptions;
    for (const Kernel &kernel : kernels) {
        DlhalKernelDesc description = {};
        description.struct_size = sizeof description;
        description.name = kernel.info->name.c_str();
        description.arg_types = kernel.types.data();
        description.num_args = kernel.types.size();
        description.launch_tags = kernel.tag_pointers.data();
        description.num_tags = kernel.tags.size();
        description.code = kernel.shader.data() + shader_head;
        description.code_size = kernel.shader.size() - shader_head;
        descriptions.push_back(description);
    }
    DlhalModule module = nullptr;
    check(dlhal_module_create_from_spirv(descriptions.data(), descriptions.size(), &module));
    return wrap(module);
}

TVM_FFI_STATIC_INIT_BLOCK() {
    define("ffi.Module.load_from_bytes.vulkan", load_from_bytes);
    define("ffi.Module.load_from_file.vulkan", load_from_file);
    define("ffi.Module.create.vulkan", create);
}

}  // namespace dlhal_tvm
