"""From the compiler to where a model runs: exported libraries, other processes, remote devices."""

import numpy as np
import pytest
import tvm
import tvm.runtime as rt
from conftest import run_python
from tvm.script import ir as I
from tvm.script import tirx as T

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)


@I.ir_module(s_tir=True)
class Add:
    """B = A + s, n elements, 64 a block."""

    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, s: T.float32):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for block in T.thread_binding((n + T.int64(63)) // T.int64(64), thread="blockIdx.x"):
            for thread in T.thread_binding(T.int64(64), thread="threadIdx.x"):
                with T.sblock("B"):
                    v = T.axis.spatial(n, block * T.int64(64) + thread)
                    T.where(block * T.int64(64) + thread < n)
                    B[v] = A[v] + s


@I.ir_module(s_tir=True)
class Spread:
    """B = 2 (A + 1) by way of an intermediate of 64 s elements."""

    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, s: T.int64):
        A = T.match_buffer(a, (64,), "float32")
        B = T.match_buffer(b, (64,), "float32")
        W = T.sblock_alloc_buffer((s * T.int64(64),), "float32")
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("W"):
                v = T.axis.spatial(64, i)
                W[T.Cast("int64", v) * s] = A[v] + T.float32(1)
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("B"):
                v = T.axis.spatial(64, i)
                B[v] = W[T.Cast("int64", v) * s] * T.float32(2)


@pytest.fixture(scope="module")
def library(tmp_path_factory, target):
    path = tmp_path_factory.mktemp("library") / "add.so"
    tvm.compile(Add, target=target).export_library(str(path))
    return path


USE = """
import sys, numpy as np, tvm, tvm.runtime as rt
dev = tvm.vulkan(0)
main = rt.load_module(sys.argv[1])["main"]
for n in (0, 1, 63, 64, 65, 4097):
    a = np.random.default_rng(n).standard_normal(n).astype("float32")
    x, y = rt.tensor(a, dev), rt.empty((n,), "float32", dev)
    main(x, y, 2.5)
    assert np.array_equal(y.numpy(), a + np.float32(2.5)), n
print("right", tvm._RUNTIME_ONLY)
"""


def test_an_exported_library_runs_in_a_process_with_the_runtime_alone(library):
    assert run_python(USE, {"TVM_USE_RUNTIME_LIB": "1"}, [library]) == "right True\n"
    assert run_python(USE, args=[library]) == "right False\n"


def test_a_remote_device_runs_an_uploaded_library(library):
    pytest.importorskip("tornado", reason="TVM's RPC needs tornado")
    code = """
import sys, numpy as np, tvm, tvm.runtime as rt
from tvm import rpc
if __name__ == "__main__":
    server = rpc.Server("127.0.0.1", 9190, 9290, silent=True)
    remote = rpc.connect(server.host, server.port)
    dev = remote.vulkan(0)
    assert dev.exist and dev.device_name == tvm.vulkan(0).device_name
    remote.upload(sys.argv[1])
    main = remote.load_module("add.so")
    a = np.arange(5000, dtype="float32")
    x, y = rt.tensor(a, dev), rt.empty((5000,), "float32", dev)
    copy = rt.empty((5000,), "float32", dev)
    main["main"](x, y, 2.5)
    y.copyto(copy)
    assert np.array_equal(copy.numpy(), a + np.float32(2.5))
    timed = main.time_evaluator("main", dev, number=5)(x, y, 2.5)
    print("right", timed.mean > 0)
    server.terminate()
"""
    assert run_python(code, args=[library]) == "right True\n"


def test_thousands_of_launches_without_a_synchronise(dev, library):
    main = rt.load_module(str(library))["main"]
    x, y = rt.tensor(np.zeros(1000, "float32"), dev), rt.empty((1000,), "float32", dev)
    for _ in range(2500):
        main(x, y, 1.0)
        main(y, x, 1.0)
    np.testing.assert_array_equal(x.numpy(), np.full(1000, 5000, "float32"))


def test_a_workspace_that_does_not_fit_is_an_exception(dev, target):
    main = tvm.compile(Spread, target=target)["main"]
    x, y = rt.tensor(np.ones(64, "float32"), dev), rt.empty((64,), "float32", dev)
    for stride in (1, 1000):
        main(x, y, stride)
        np.testing.assert_array_equal(y.numpy(), np.full(64, 4, "float32"))
    with pytest.raises(MemoryError, match="asked for"):
        main(x, y, 1 << 40)
    main(x, y, 3)
    np.testing.assert_array_equal(y.numpy(), np.full(64, 4, "float32"))


def test_kernels_are_saved_where_tvms_variable_says(target, tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_VULKAN_DEBUG_SHADER_SAVEPATH", str(tmp_path / "shaders"))
    tvm.compile(Add, target=target)
    saved = {path.suffix: path for path in (tmp_path / "shaders").iterdir()}
    assert saved.keys() == {".spv", ".txt"}
    assert saved[".spv"].read_bytes()[:4] == bytes([0x03, 0x02, 0x23, 0x07])
    assert "blockIdx.x" in saved[".txt"].read_text()
