"""Operators as models have them: compiled by the default pipelines, or scheduled by hand."""

import math

import numpy as np
import pytest
import tvm
from codegen_support import compiled, on_device, run
from tvm import relax, te
from tvm.script import ir as I
from tvm.script import relax as R

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)


def built(mod, target, dev):
    return relax.VirtualMachine(tvm.compile(mod, target=target), dev)


def called(vm, dev, *arrays, name="main"):
    result = vm[name](*[on_device(dev, array) for array in arrays])
    return result.numpy() if hasattr(result, "numpy") else [part.numpy() for part in result]


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype("float32")


@pytest.fixture(params=["default", "detected"])
def any_target(request, target):
    """Vulkan's default target, and the one made from the device, whose warps are real."""
    return tvm.target.Target("vulkan") if request.param == "default" else target


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_an_mlp_of_any_batch(any_target, dev, rng):
    @I.ir_module
    class Mlp:
        @R.function
        def main(
            x: R.Tensor(("n", 48), "float32"),
            w1: R.Tensor((48, 96), "float32"),
            b1: R.Tensor((96,), "float32"),
            w2: R.Tensor((96, 10), "float32"),
        ):
            with R.dataflow():
                h = R.nn.gelu(R.add(R.matmul(x, w1), b1))
                y = R.nn.softmax(R.matmul(h, w2))
                R.output(y)
            return y

    w1, b1, w2 = numbers(rng, 48, 96) / 7, numbers(rng, 96), numbers(rng, 96, 10) / 10
    vm = built(Mlp, any_target, dev)
    for n in (1, 3, 64, 257):
        x = numbers(rng, n, 48)
        h = x @ w1 + b1
        h = h * (1 + np.vectorize(math.erf)(h / np.sqrt(2))) / 2
        actual = called(vm, dev, x, w1, b1, w2)
        np.testing.assert_allclose(actual, softmax(h @ w2), 1e-4, 1e-6)


def test_normalisations_and_reductions_of_any_length(any_target, dev, rng):
    @I.ir_module
    class Norm:
        @R.function
        def main(
            x: R.Tensor(("n", "m"), "float32"),
            g: R.Tensor(("m",), "float32"),
            b: R.Tensor(("m",), "float32"),
        ):
            with R.dataflow():
                a = R.nn.layer_norm(x, g, b, axes=[-1])
                c = R.nn.rms_norm(x, g, axes=[-1])
                s = R.nn.softmax(x)
                p = R.nn.log_softmax(x)
                i = R.argmax(x, axis=1)
                t = R.mean(x, axis=0)
                v = R.max(x, axis=1)
                R.output(a, c, s, p, i, t, v)
            return a, c, s, p, i, t, v

    vm = built(Norm, any_target, dev)
    for n, m in ((1, 1), (5, 33), (2, 4097), (130, 64)):
        x, g, b = numbers(rng, n, m), numbers(rng, m), numbers(rng, m)
        a, c, s, p, i, t, v = called(vm, dev, x, g, b)
        wide = x.astype("float64")
        centred = wide - wide.mean(1, keepdims=True)
        normal = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(a, normal * g + b, 1e-3, 2e-4)
        rms = np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(c, wide / rms * g, 1e-4, 1e-5)
        np.testing.assert_allclose(s, softmax(wide), 1e-4, 1e-7)
        np.testing.assert_allclose(p, np.log(softmax(wide)), 1e-4, 1e-5)
        np.testing.assert_array_equal(i, x.argmax(1))
        np.testing.assert_allclose(t, wide.mean(0), 1e-4, 1e-5)
        np.testing.assert_array_equal(v, x.max(1))


def test_a_residual_net_of_convolutions(any_target, dev, rng):
    @I.ir_module
    class Net:
        @R.function
        def main(
            x: R.Tensor((2, 3, 16, 16), "float32"),
            w1: R.Tensor((8, 3, 3, 3), "float32"),
            w2: R.Tensor((8, 8, 3, 3), "float32"),
            w3: R.Tensor((8, 5), "float32"),
        ):
            with R.dataflow():
                h = R.nn.relu(R.nn.conv2d(x, w1, padding=(1, 1)))
                r = R.nn.conv2d(h, w2, padding=(1, 1))
                s = R.nn.relu(R.add(h, r))
                p = R.nn.max_pool2d(s, pool_size=(2, 2), strides=(2, 2))
                q = R.mean(p, axis=[2, 3])
                y = R.matmul(q, w3)
                R.output(y)
            return y

    def conv(x, w):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, w)

    x = numbers(rng, 2, 3, 16, 16)
    w1, w2, w3 = numbers(rng, 8, 3, 3, 3) / 4, numbers(rng, 8, 8, 3, 3) / 8, numbers(rng, 8, 5)
    h = np.maximum(conv(x, w1), 0)
    s = np.maximum(h + conv(h, w2), 0)
    expected = s.reshape(2, 8, 8, 2, 8, 2).max((3, 5)).mean((2, 3)) @ w3
    actual = called(built(Net, any_target, dev), dev, x, w1, w2, w3)
    np.testing.assert_allclose(actual, expected, 1e-4, 1e-4)


def test_attention_over_a_cache_that_grows(target, dev, rng):
    @I.ir_module
    class Attention:
        @R.function
        def append(
            cache: R.Tensor((1, 4, "n", 16), "float32"), new: R.Tensor((1, 4, 1, 16), "float32")
        ):
            with R.dataflow():
                y = R.concat([cache, new], axis=2)
                R.output(y)
            return y

        @R.function
        def attend(
            q: R.Tensor((1, 4, 1, 16), "float32"),
            keys: R.Tensor((1, 4, "n", 16), "float32"),
            values: R.Tensor((1, 4, "n", 16), "float32"),
        ):
            with R.dataflow():
                scores = R.matmul(q, R.permute_dims(keys, [0, 1, 3, 2]))
                weights = R.nn.softmax(R.divide(scores, R.const(4.0)), axis=-1)
                y = R.matmul(weights, values)
                R.output(y)
            return y

    vm = built(Attention, target, dev)
    keys = values = on_device(dev, np.zeros((1, 4, 0, 16), "float32"))
    host_k = host_v = np.zeros((1, 4, 0, 16))
    for _ in range(7):
        q, k, v = (numbers(rng, 1, 4, 1, 16) for _ in range(3))
        keys = vm["append"](keys, on_device(dev, k))
        values = vm["append"](values, on_device(dev, v))
        y = vm["attend"](on_device(dev, q), keys, values)
        host_k, host_v = np.concatenate([host_k, k], 2), np.concatenate([host_v, v], 2)
        expected = softmax(q @ host_k.transpose(0, 1, 3, 2) / 4) @ host_v
        np.testing.assert_allclose(y.numpy(), expected, 1e-4, 1e-5)
    np.testing.assert_array_equal(keys.numpy(), host_k.astype("float32"))


def test_a_half_precision_block_with_a_mask_and_an_embedding(target, dev, rng):
    @I.ir_module
    class Block:
        @R.function
        def main(
            tokens: R.Tensor(("n",), "int64"),
            table: R.Tensor((50, 32), "float16"),
            mask: R.Tensor(("n", "n"), "bool"),
        ):
            with R.dataflow():
                x = R.take(table, tokens, axis=0)
                s = R.matmul(x, R.permute_dims(x))
                m = R.where(mask, s, R.const(-60000.0, "float16"))
                y = R.matmul(R.nn.softmax(m), x)
                R.output(y)
            return y

    table = (numbers(rng, 50, 32) / 4).astype("float16")
    vm = built(Block, target, dev)
    for n in (1, 5, 33):
        tokens = rng.integers(0, 50, n)
        mask = np.tril(np.ones((n, n), "bool"))
        x = table[tokens].astype("float32")
        expected = softmax(np.where(mask, x @ x.T, -60000)) @ x
        actual = called(vm, dev, tokens, table, mask)
        np.testing.assert_allclose(actual.astype("float32"), expected, 0.01, 0.01)


def test_integer_operators_of_models(target, dev, rng):
    @I.ir_module
    class Integers:
        @R.function
        def main(x: R.Tensor((6, 40), "int64"), y: R.Tensor((6, 40), "int8")):
            with R.dataflow():
                a = R.astype(R.sum(R.astype(y, "int32"), axis=1), "int64")
                b = R.cumsum(x, axis=1)
                c = R.greater(x, R.const(3, "int64"))
                d = R.multiply(x, R.const(1 << 33, "int64"))
                R.output(a, b, c, d)
            return a, b, c, d

    x, y = rng.integers(-9, 9, (6, 40)), rng.integers(-128, 128, (6, 40), "int8")
    a, b, c, d = called(built(Integers, target, dev), dev, x, y)
    np.testing.assert_array_equal(a, y.sum(1, dtype="int64"))
    np.testing.assert_array_equal(b, x.cumsum(1))
    np.testing.assert_array_equal(c, x > 3)
    np.testing.assert_array_equal(d, x << 33)


def tiled_matmul(m, n, k, tile, dtype="float32"):
    """A product whose tiles go through workgroup memory."""
    a, b = te.placeholder((m, k), dtype, "a"), te.placeholder((k, n), dtype, "b")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], r), "c")
    s = tvm.s_tir.Schedule(te.create_prim_func([a, b, c]))
    block = s.get_sblock("c")
    i, j, r = s.get_loops(block)
    (i0, i1), (j0, j1), (r0, r1) = (s.split(x, [None, tile]) for x in (i, j, r))
    s.reorder(i0, j0, i1, j1, r0, r1)
    s.bind(i0, "blockIdx.y")
    s.bind(j0, "blockIdx.x")
    s.bind(i1, "threadIdx.y")
    s.bind(j1, "threadIdx.x")
    for index in range(2):
        copy = s.cache_read(block, index, "shared")
        s.compute_at(copy, r0)
        x, y = s.get_loops(copy)[-2:]
        s.bind(x, "threadIdx.y")
        s.bind(y, "threadIdx.x")
    s.decompose_reduction(block, r0)
    return s.mod


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_a_matmul_through_workgroup_memory(dtype, target, dev, rng):
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((64, 48), (48, 32)))
    mod = tiled_matmul(64, 32, 48, 8, dtype)
    actual = run(mod, target, dev, a, b, out=np.ones((64, 32), dtype))
    np.testing.assert_array_equal(actual, (a.astype("int64") @ b.astype("int64")).astype(dtype))


def test_tensors_of_no_elements(target, dev):
    n = te.var("n", "int64")
    a = te.placeholder((n, 4), "float32", "a")
    out = te.compute((n, 4), lambda i, j: a[i, j] + 1, "out")
    s = tvm.s_tir.Schedule(te.create_prim_func([a, out]))
    i, j = s.get_loops("out")
    s.bind(i, "blockIdx.x")
    s.bind(j, "threadIdx.x")
    function = compiled(s.mod, target)
    for rows in (0, 3, 0):
        x = np.ones((rows, 4), "float32")
        y = on_device(dev, np.zeros_like(x))
        function(on_device(dev, x), y)
        np.testing.assert_array_equal(y.numpy(), x + 1)
