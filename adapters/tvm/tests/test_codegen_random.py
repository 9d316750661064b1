"""Random kernels give on Vulkan what TVM's LLVM backend gives, bit by bit.

DLHAL_TEST_SOAK=1 runs two thousand.
"""

import os

import numpy as np
import pytest
import tvm
from codegen_support import on_device
from random_kernels import Generator

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)

SEEDS = range(2000) if os.environ.get("DLHAL_TEST_SOAK") else range(24)


def results(text, kernel, target, dev):
    function = tvm.script.from_source(text).with_attr("global_symbol", "main")
    compiled = tvm.compile(tvm.IRModule({"main": function}), target=target)["main"]
    inputs = [on_device(dev, array) for _, _, array in kernel.arrays]
    outputs = [on_device(dev, np.ones(n, dtype)) for _, dtype, n in kernel.outputs]
    compiled(*inputs, *[number for _, _, number in kernel.scalars], *outputs)
    return [output.numpy() for output in outputs]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_kernel_gives_what_llvm_gives(seed, target, dev):
    kernel = Generator(seed).kernel()
    print(kernel.threaded)
    try:
        expected = results(kernel.serial, kernel, "llvm", tvm.cpu())
        actual = results(kernel.threaded, kernel, target, dev)
    except Exception as error:
        # TVM's own passes may fold a constant out of the type to which they narrow it.
        if "Check failed" not in str(error) or "kernel `" in str(error):
            raise
        pytest.skip(f"TVM's passes fail: {error}")
    for (name, _, _), ours, theirs in zip(kernel.outputs, actual, expected):
        np.testing.assert_array_equal(ours, theirs, name)
