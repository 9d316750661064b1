"""Timing on the device: TVM's time_evaluator and its timer."""

import numpy as np
import tvm
import tvm.runtime as rt
from conftest import MODULES


def saxpy_module():
    load = tvm.get_global_func("ffi.Module.load_from_bytes.vulkan")
    return load((MODULES / "v0.6.1" / "demo.bin").read_bytes())


def test_the_evaluator_tells_more_work_from_less(dev):
    evaluator = saxpy_module().time_evaluator("saxpy", dev, number=20, repeat=3)
    tvm.get_global_func("__tvm_set_device")(int(dev.dlpack_device_type()), dev.index)
    medians = []
    for n in (64, 1 << 21):
        x, y = (rt.tensor(np.zeros(n, "float32"), dev) for _ in range(2))
        result = evaluator(x, y, 2.0, n, n // 64, 64)
        assert len(result.results) == 3 and min(result.results) > 0
        medians.append(result.median)
    # 32,768 times the work: whatever the clock, it shows.
    assert medians[1] > 3 * medians[0]
    assert tvm.get_global_func("runtime.timer.vulkan", allow_missing=True)
