"""Vulkan for TVM: `pip install` this beside apache-tvm, and `target="vulkan"` compiles and runs.

TVM loads it by itself at `import tvm`. `python -m dlhal_tvm` says what was found and which runtime
serves.
"""

from ._load import _autoload as _autoload
from ._load import diagnose, library_path, serving

__all__ = ["diagnose", "library_path", "serving"]
