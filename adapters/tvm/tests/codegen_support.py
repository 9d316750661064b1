"""Kernels for the tests of the code generator, and how to run them."""

import numpy as np
import tvm
from tvm import te

THREADS = 64


def scheduled(outputs, *inputs, threads=THREADS):
    """The function of `outputs` with every loop nest over blockIdx.x and threadIdx.x."""
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    schedule = tvm.s_tir.Schedule(te.create_prim_func([*inputs, *outputs]))
    root = schedule.get_sblock("root")
    for block in schedule.get_child_blocks(root):
        spatial = [
            loop
            for loop, variable in zip(schedule.get_loops(block), schedule.get(block).iter_vars)
            if int(variable.iter_type) == 0
        ]
        fused = schedule.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        outer, inner = schedule.split(fused, [None, threads])
        schedule.bind(outer, "blockIdx.x")
        schedule.bind(inner, "threadIdx.x")
    return schedule.mod


def compiled(mod, target):
    return tvm.compile(mod, target=target)["main"]


def on_device(dev, array):
    return tvm.runtime.tensor(np.ascontiguousarray(array), dev)


def run(mod, target, dev, *inputs, out):
    """What the function writes to a tensor like `out`, which holds other values before."""
    result = on_device(dev, out)
    compiled(mod, target)(*[on_device(dev, array) for array in inputs], result)
    return result.numpy()


def elementwise(function, target, dev, *arrays, dtype=None):
    """`function` of TE applied to each element of arrays of one shape."""
    return elementwise_each([function], target, dev, *arrays, dtypes=[dtype])[0]


def elementwise_each(functions, target, dev, *arrays, dtypes=None):
    """The result of each function, from one module, as compiling one takes most of the time."""
    (n,) = arrays[0].shape
    inputs = [te.placeholder((n,), str(a.dtype), f"x{k}") for k, a in enumerate(arrays)]

    def applied(function):
        return lambda i: function(*[x[i] for x in inputs])

    outputs = [te.compute((n,), applied(f), f"y{k}") for k, f in enumerate(functions)]
    dtypes = dtypes or [None] * len(functions)
    results = [
        on_device(dev, np.ones(n, dtype or str(output.dtype)))
        for output, dtype in zip(outputs, dtypes)
    ]
    tensors = [on_device(dev, array) for array in arrays]
    compiled(scheduled(outputs, *inputs), target)(*tensors, *results)
    return [result.numpy() for result in results]
