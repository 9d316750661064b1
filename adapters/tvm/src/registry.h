/* TVM's registry of global functions. */
#ifndef DLHAL_TVM_REGISTRY_H_
#define DLHAL_TVM_REGISTRY_H_

#include <tvm/ffi/function.h>

namespace dlhal_tvm {

/**
 * Registers a typed function, in place of one that has the name already: whoever loads this plugin
 * into a TVM with a Vulkan runtime of its own has chosen this one.
 */
template <typename F>
void define(const char *name, F function) {
    tvm::ffi::Function::SetGlobal(name, tvm::ffi::Function::FromTyped(function, name), true);
}

}  // namespace dlhal_tvm

#endif  // DLHAL_TVM_REGISTRY_H_
