"""The factory that TVM's own Vulkan generator calls with what it made."""

import struct

import numpy as np
import pytest
import tvm
import tvm.runtime as rt
import tvm_ffi
from conftest import MODULES
from tvm import te

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)

THREADS = 64


def add_kernel():
    """C = A + B for any n, with the signature of the kernel in add_f32."""
    n = te.var("n")
    a, b = (te.placeholder((n,), name=name) for name in "AB")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([a, b, c]))
    (loop,) = schedule.get_loops(schedule.get_sblock("C"))
    block, thread = schedule.split(loop, [None, THREADS])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    return schedule.mod


def signatures(mod):
    """TVM's own description of the kernels, which Python cannot make: the WebGPU generator passes
    them to a factory that is asked for by name."""
    caught = []

    def factory(shaders, fmt, infos, sources):
        caught.append(infos)
        load = tvm.get_global_func("ffi.Module.load_from_bytes.vulkan")
        return load((MODULES / "add_f32.vulkan.bin").read_bytes())

    tvm_ffi.register_global_func("ffi.Module.create.webgpu", factory, override=True)
    try:
        tvm.compile(mod, target="webgpu")
    finally:
        tvm_ffi.registry.remove_global_func("ffi.Module.create.webgpu")
    return caught[0]


def shader(raw, name):
    """A kernel's shader in a module's bytes: its name, a length, and flags and SPIR-V."""
    key = struct.pack("<Q", len(name)) + name
    at = raw.rindex(key) + len(key)
    (length,) = struct.unpack_from("<Q", raw, at)
    return raw[at + 8 : at + 8 + length]


def test_the_factory_makes_a_module_that_runs(dev, rng):
    name = "main_kernel"
    raw = (MODULES / "add_f32.vulkan.bin").read_bytes()
    create = tvm.get_global_func("ffi.Module.create.vulkan")
    infos = signatures(add_kernel())
    module = create({name: shader(raw, name.encode())}, "vulkan", infos, {})
    assert module.kind == "vulkan"
    n = 1000
    a, b = (rng.standard_normal(n).astype("float32") for _ in range(2))
    c = rt.empty((n,), "float32", dev)
    tvm.get_global_func("__tvm_set_device")(int(dev.dlpack_device_type()), dev.index)
    blocks = (n + THREADS - 1) // THREADS
    module[name](rt.tensor(a, dev), rt.tensor(b, dev), c, n, blocks, THREADS)
    np.testing.assert_allclose(c.numpy(), a + b, rtol=1e-6)


def test_a_kernel_without_a_shader_is_refused(dev):
    create = tvm.get_global_func("ffi.Module.create.vulkan")
    with pytest.raises(ValueError, match="main_kernel"):
        create({}, "vulkan", signatures(add_kernel()), {})
