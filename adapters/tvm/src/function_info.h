/* TVM's description of a kernel: a registered object whose class no installed header declares. The
 * fields are those of src/runtime/metadata.h in TVM 0.25 to 0.27. */
#ifndef DLHAL_TVM_FUNCTION_INFO_H_
#define DLHAL_TVM_FUNCTION_INFO_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/string.h>

namespace dlhal_tvm {

class FunctionInfoObj : public tvm::ffi::Object {
   public:
    tvm::ffi::String name;
    tvm::ffi::Array<DLDataType> arg_types;
    tvm::ffi::Array<tvm::ffi::String> launch_param_tags;
    tvm::ffi::Array<int> arg_extra_tags;

    TVM_FFI_DECLARE_OBJECT_INFO_FINAL("runtime.FunctionInfo", FunctionInfoObj, tvm::ffi::Object);
};

class FunctionInfo : public tvm::ffi::ObjectRef {
   public:
    TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(FunctionInfo, tvm::ffi::ObjectRef, FunctionInfoObj);
};

}  // namespace dlhal_tvm

#endif  // DLHAL_TVM_FUNCTION_INFO_H_
