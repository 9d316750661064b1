"""`target.build.vulkan` for a TVM whose wheel was built without it."""

import os
import re
import sys
from pathlib import Path

from . import kernel, module_bytes
from .device import Device
from .errors import CompileError

# Calls deep enough for sums of a thousand terms, which nest as deep.
_NESTING = 10_000

_BUILD = "target.build.vulkan"
_SAVE_PATH = "TVM_VULKAN_DEBUG_SHADER_SAVEPATH"
_LOAD = "ffi.Module.load_from_bytes.vulkan"
_LAUNCH_PARAMS = ("tirx.kernel_launch_params", "tir.kernel_launch_params")


def register() -> None:
    """Registers the code generator, unless TVM has one."""
    import tvm_ffi

    if tvm_ffi.get_global_func(_BUILD, allow_missing=True) is None:
        tvm_ffi.register_global_func(_BUILD, build)


def build(mod, target):
    """Compiles the kernels of `mod` and makes the runtime's module of them."""
    import tvm_ffi

    return tvm_ffi.get_global_func(_LOAD)(compile_module(mod, target))


def compile_module(mod, target) -> bytes:
    """TVM's bytes form of the kernels of `mod`."""
    device = Device(target)
    kernels = []
    for variable, function in _vectorized(mod).functions.items():
        attributes = dict(function.attrs)
        name = str(attributes.get("global_symbol", variable.name_hint))
        tags = next((attributes[key] for key in _LAUNCH_PARAMS if key in attributes), ())
        shader = _compiled(function, name, device)
        _save(function, name, shader)
        kernels.append((name, shader, [str(tag) for tag in tags]))
    return module_bytes.write(kernels)


def _compiled(function, name, device):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _NESTING))
    try:
        return kernel.compile_kernel(function, name, device)
    except CompileError as error:
        raise CompileError(f"kernel `{name}`: {error}") from None
    except Exception as error:
        what = f"the code generator failed ({type(error).__name__}: {error})"
        raise CompileError(f"kernel `{name}`: {what}; report it with the kernel's IR") from error
    finally:
        sys.setrecursionlimit(limit)


def _save(function, name, shader):
    """Writes the kernel's IR and SPIR-V where TVM's variable asks for it."""
    if folder := os.environ.get(_SAVE_PATH):
        path = Path(folder) / re.sub(r"[^\w.-]", "_", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(path.name + ".txt").write_text(str(function))
        path.with_name(path.name + ".spv").write_bytes(shader.spirv)


def _vectorized(mod):
    """The module with buffers of vectors where all accesses are of vectors."""
    from tvm import tirx

    return tirx.transform.PointerValueTypeRewrite()(mod)
