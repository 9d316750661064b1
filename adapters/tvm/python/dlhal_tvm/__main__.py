"""`python -m dlhal_tvm`: what was found and which runtime serves."""

import tvm

from . import diagnose

print(f"TVM {tvm.__version__}")
print(diagnose())
