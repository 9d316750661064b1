"""Loads the plugin into TVM, and says which Vulkan runtime serves.

DLHAL_TVM decides where TVM has a Vulkan runtime of its own: `auto` (or unset) keeps TVM's, `on`
puts this one in its place, `off` keeps this one out of TVM altogether.
"""

import ctypes
import os
from pathlib import Path

_MODES = ("auto", "on", "off")


def library_path() -> str:
    """The plugin, `libtvm_runtime_vulkan.so`; `libdlhal.so.0` lies beside it."""
    return str(Path(__file__).resolve().parent / "lib" / "libtvm_runtime_vulkan.so")


def _mode() -> str:
    mode = os.environ.get("DLHAL_TVM", "auto").lower() or "auto"
    if mode not in _MODES:
        raise ValueError(f"DLHAL_TVM is `{mode}`; set it to one of {', '.join(_MODES)}")
    return mode


def _function(name: str):
    import tvm_ffi

    return tvm_ffi.get_global_func(name, allow_missing=True)


def serving() -> str:
    """Which Vulkan runtime serves TVM: `dlhal`, `tvm` for TVM's own, or `none`."""
    if _function("dlhal.version") is not None:
        return "dlhal"
    return "tvm" if _function("device_api.vulkan") is not None else "none"


def diagnose() -> str:
    """What serves, and the loader, drivers and devices that were found and left out."""
    served_by = {
        "dlhal": lambda: (
            f"dlhal {_function('dlhal.version')()} serves TVM's Vulkan devices.\n"
            + _function("dlhal.diagnose")()
        ),
        "tvm": lambda: "TVM's own Vulkan runtime serves; DLHAL_TVM=on puts dlhal in its place.",
        "none": lambda: (
            "No Vulkan runtime is loaded"
            + ("; DLHAL_TVM=off keeps dlhal out." if _mode() == "off" else ".")
        ),
    }
    return served_by[serving()]()


def _autoload() -> None:
    """What TVM calls, by the entry point group `tvm.backends`, once its own backends are loaded."""
    mode = _mode()
    if mode == "off" or (serving() == "tvm" and mode == "auto"):
        return
    if serving() != "dlhal":
        # Never unloaded, as what it registers points into it.
        ctypes.CDLL(library_path(), ctypes.RTLD_LOCAL)
    from tvm.base import _RUNTIME_ONLY

    if not _RUNTIME_ONLY:
        from . import codegen, detect

        codegen.register()
        detect.register()
