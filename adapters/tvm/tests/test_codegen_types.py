"""Element types, arguments, grids and control flow, against NumPy."""

import numpy as np
import pytest
import tvm
from codegen_support import compiled, elementwise_each, on_device, run, scheduled
from tvm import te, tirx
from tvm.script import tirx as T

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def numbers(rng, dtype, n):
    if dtype == "bool":
        return rng.integers(0, 2, n).astype("bool")
    if dtype in FLOATS:
        return rng.standard_normal(n).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, dtype, endpoint=True)


def check_each(target, dev, arrays, cases, dtype=None):
    """`cases` are pairs of a function and what it shall give."""
    dtypes = [dtype] * len(cases)
    actual = elementwise_each([f for f, _ in cases], target, dev, *arrays, dtypes=dtypes)
    for number, (result, (_, expected)) in enumerate(zip(actual, cases)):
        np.testing.assert_array_equal(result, expected.astype(result.dtype), f"case {number}")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps_in_its_own_bits(dtype, target, dev, rng):
    a, b = numbers(rng, dtype, 333), numbers(rng, dtype, 333)
    with np.errstate(over="ignore"):
        cases = [
            (lambda x, y: x + y, a + b),
            (lambda x, y: x - y, a - b),
            (lambda x, y: x * y, a * b),
            (lambda x, y: x & y, a & b),
            (lambda x, y: x | y, a | b),
            (lambda x, y: x ^ y, a ^ b),
            (lambda x, y: ~x, ~a),
            (tirx.max, np.maximum(a, b)),
            (tirx.min, np.minimum(a, b)),
        ]
    check_each(target, dev, (a, b), cases)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_and_shifts(dtype, target, dev, rng):
    a, b = numbers(rng, dtype, 333), numbers(rng, dtype, 333)
    b[np.abs(b.astype("float64")) < 1] = 3
    b[:40] = rng.integers(1, 9, 40)
    b[a == np.iinfo(dtype).min] = 5
    quotient = np.array([int(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1)
                         for x, y in zip(a, b)], dtype)  # fmt: skip
    shift = rng.integers(0, np.iinfo(dtype).bits, 333).astype(dtype)
    cases = [
        (lambda x, y, s: tirx.floordiv(x, y), a // b),
        (lambda x, y, s: tirx.floormod(x, y), a % b),
        (lambda x, y, s: tirx.truncdiv(x, y), quotient),
        (lambda x, y, s: tirx.truncmod(x, y), np.fmod(a, b)),
        (lambda x, y, s: x >> s, a >> shift),
        (lambda x, y, s: x << s, a << shift),
    ]
    check_each(target, dev, (a, b, shift), cases)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_comparisons_make_bytes_of_truth(dtype, target, dev, rng):
    a, b = numbers(rng, dtype, 257), numbers(rng, dtype, 257)
    b[::3] = a[::3]
    cases = [
        (lambda x, y: x < y, a < b),
        (lambda x, y: x >= y, a >= b),
        (lambda x, y: tirx.Not(x == y), a != b),
        (lambda x, y: tirx.Or(tirx.And(x < y, x == y), x > y), a > b),
    ]
    check_each(target, dev, (a, b), cases, "bool")


@pytest.mark.parametrize("source", ["bool", *INTEGERS, *FLOATS])
def test_casts_are_those_of_numpy(source, target, dev, rng):
    x = numbers(rng, source, 129)
    if source in FLOATS:
        x = (x * 40).astype(source)
    all_types = ["bool", *INTEGERS, *FLOATS]
    functions = [
        # What is negative has no counterpart in unsigned types.
        lambda v, d=dtype: (tirx.abs(v) if source in FLOATS and d[0] == "u" else v).astype(d)
        for dtype in all_types
    ]
    actual = elementwise_each(functions, target, dev, x, dtypes=all_types)
    for dtype, result in zip(all_types, actual):
        given = np.abs(x) if source in FLOATS and dtype[0] == "u" else x
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(result, given.astype(dtype), dtype)


def test_bfloat16_is_rounded_to_the_nearest(target, dev, rng):
    import ml_dtypes

    a, b = (rng.standard_normal(200).astype(ml_dtypes.bfloat16) for _ in range(2))
    inputs = [te.placeholder((200,), "bfloat16", name) for name in "ab"]
    out = te.compute((200,), lambda i: inputs[0][i] * inputs[1][i], "c")
    tensors = [tvm.runtime.empty((200,), "bfloat16", dev) for _ in range(3)]
    for tensor, array in zip(tensors, (a, b, b)):
        tensor.copyfrom(array)
    compiled(scheduled(out, *inputs), target)(*tensors)
    np.testing.assert_array_equal(tensors[2].numpy().view("uint16"), (a * b).view("uint16"))


def reduction(reducer, a):
    """Over the second dimension of a placeholder, by one thread a row."""
    rows, columns = a.shape
    k = te.reduce_axis((0, columns), "k")
    return scheduled(te.compute((rows,), lambda i: reducer(a[i, k], k), "out"), a)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
)
def test_reductions_of_every_type(dtype, target, dev, rng):
    x = (numbers(rng, dtype, (37, 100)) / 7).astype(dtype)
    a = te.placeholder(x.shape, dtype, "a")
    for reducer, expected in [(te.sum, np.sum), (te.max, np.max), (te.min, np.min)]:
        actual = run(reduction(reducer, a), target, dev, x, out=np.ones(37, dtype))
        wanted = expected(x, axis=1, dtype=dtype) if reducer is te.sum else expected(x, axis=1)
        tolerance = {"float16": 0.05, "float32": 1e-5}.get(dtype, 1e-12)
        np.testing.assert_allclose(actual, wanted, tolerance, tolerance)


SCALARS = [("int32", -7), ("int64", -(1 << 40)), ("uint32", 1 << 31), ("float32", 1.5),
           ("float16", -2.5), ("float64", 7.0), ("bool", True), ("int8", -3), ("uint8", 200),
           ("int16", -300), ("uint16", 60_000)]  # fmt: skip


@pytest.mark.parametrize("dtype, value", SCALARS)
def test_a_scalar_argument_of_any_type_reaches_the_kernel(dtype, value, target, dev):
    s = te.var("s", dtype)
    a = te.placeholder((100,), "int64", "a")
    out = te.compute((100,), lambda i: a[i] + s.astype("float64").astype("int64"), "out")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([a, s, out]))
    block, thread = schedule.split(schedule.get_loops("out")[0], [None, 32])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    x = np.arange(100, dtype="int64")
    y = on_device(dev, np.zeros_like(x))
    compiled(schedule.mod, target)(on_device(dev, x), value, y)
    np.testing.assert_array_equal(y.numpy(), x + int(value))


def test_more_scalars_than_push_constants_hold_go_into_a_uniform_buffer(target, dev):
    scalars = [te.var(f"s{k}", "int32") for k in range(80)]
    out = te.compute((64,), lambda i: sum(s * (k + 1) for k, s in enumerate(scalars)) + i, "out")
    mod = scheduled_with(out, scalars)
    y = on_device(dev, np.zeros(64, "int32"))
    values = list(range(80))
    compiled(mod, target)(*values, y)
    total = sum(v * (k + 1) for k, v in enumerate(values))
    np.testing.assert_array_equal(y.numpy(), total + np.arange(64))


def test_scalars_of_float16_in_a_uniform_buffer(target, dev):
    scalars = [te.var(f"s{k}", "float16") for k in range(80)]
    out = te.compute((64,), lambda i: sum(scalars) + i.astype("float16"), "out")
    y = on_device(dev, np.zeros(64, "float16"))
    compiled(scheduled_with(out, scalars), target)(*[float(k % 4) for k in range(80)], y)
    np.testing.assert_array_equal(y.numpy(), 120 + np.arange(64))


def scheduled_with(out, scalars):
    schedule = tvm.s_tir.Schedule(te.create_prim_func([*scalars, out]))
    block, thread = schedule.split(schedule.get_loops(out.op.name)[0], [None, 32])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    return schedule.mod


def test_a_dynamic_length_from_0_to_4097(target, dev):
    n = te.var("n", "int64")
    a = te.placeholder((n,), "float32", "a")
    function = compiled(scheduled(te.compute((n,), lambda i: a[i] * 2 + i, "b"), a), target)
    for length in (0, 1, 2, 63, 64, 65, 1000, 4096, 4097):
        x = np.arange(length, dtype="float32")
        y = on_device(dev, np.ones_like(x))
        function(on_device(dev, x), y)
        np.testing.assert_array_equal(y.numpy(), x * 3)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_grid_over_65535_in_x(dynamic, target, dev):
    n = te.var("n", "int64") if dynamic else 70_001
    a = te.placeholder((n,), "int32", "a")
    mod = scheduled(te.compute((n,), lambda i: a[i] + 1, "b"), a, threads=1)
    x = np.arange(70_001, dtype="int32")
    y = on_device(dev, np.zeros_like(x))
    compiled(mod, target)(on_device(dev, x), y)
    np.testing.assert_array_equal(y.numpy(), x + 1)


def test_a_grid_in_three_dimensions(target, dev):
    out = te.compute((3, 5, 7, 4), lambda z, y, x, t: z * 1000 + y * 100 + x * 10 + t, "out")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([out]))
    names = ["blockIdx.z", "blockIdx.y", "blockIdx.x", "threadIdx.z"]
    for loop, name in zip(schedule.get_loops("out"), names):
        schedule.bind(loop, name)
    y = on_device(dev, np.zeros((3, 5, 7, 4), "int32"))
    compiled(schedule.mod, target)(y)
    z, y_, x, t = np.indices((3, 5, 7, 4))
    np.testing.assert_array_equal(y.numpy(), z * 1000 + y_ * 100 + x * 10 + t)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int8", "uint8", "int16", "uint16", "float64", "bool"]
)
@pytest.mark.parametrize("lanes", [2, 3, 4, 8])
def test_vectorised_loads_and_stores(dtype, lanes, target, dev, rng):
    n = 96 * lanes
    a = te.placeholder((n,), dtype, "a")
    out = te.compute((n,), lambda i: tirx.Not(a[i]) if dtype == "bool" else a[i] + a[i], "out")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([a, out]))
    outer, inner = schedule.split(schedule.get_loops("out")[0], [None, lanes])
    block, thread = schedule.split(outer, [None, 32])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    schedule.vectorize(inner)
    x = numbers(rng, dtype, n)
    actual = run(schedule.mod, target, dev, x, out=np.ones(n, dtype))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(actual, ~x if dtype == "bool" else x + x)


def test_control_flow_of_each_kind(target, dev):
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((256,), "int32"), b: T.Buffer((256,), "int32")):
        for i in T.thread_binding(256, thread="threadIdx.x"):
            with T.sblock("b"):
                v = T.axis.spatial(256, i)
                b[v] = 0
                if a[v] > 5:
                    b[v] = 1
                else:
                    if a[v] > 2:
                        b[v] = 2
                for k in range(a[v]):
                    b[v] = b[v] + k * 10
                while b[v] > 100:
                    b[v] = b[v] - 100

    x = (np.arange(256) % 11 - 2).astype("int32")
    expected = np.where(x > 5, 1, np.where(x > 2, 2, 0)) + [10 * sum(range(v)) for v in x]
    while (expected > 100).any():
        expected = np.where(expected > 100, expected - 100, expected)
    mod = tvm.IRModule({"main": main})
    np.testing.assert_array_equal(run(mod, target, dev, x, out=np.ones_like(x)), expected)


def test_an_expression_of_a_thousand_terms(target, dev):
    a = te.placeholder((64,), "int32", "a")
    out = te.compute((64,), lambda i: sum((a[i] ^ k for k in range(1000)), a[i]), "out")
    x = np.arange(64, dtype="int32")
    actual = run(scheduled(out, a), target, dev, x, out=np.ones_like(x))
    np.testing.assert_array_equal(actual, sum((x ^ k for k in range(1000)), x))


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16"])
def test_small_elements_at_indices_of_64_bits(dtype, target, dev, rng):
    n, m = te.var("n", "int64"), te.var("m", "int64")
    a = te.placeholder((n, m), dtype, "a")
    function = compiled(scheduled(te.compute((m, n), lambda i, j: a[j, i], "b"), a), target)
    x = numbers(rng, dtype, (37, 51))
    y = on_device(dev, np.ones((51, 37), dtype))
    function(on_device(dev, x), y)
    np.testing.assert_array_equal(y.numpy(), x.T)


def test_indices_of_64_bits_need_not_fit_32(target, dev):
    """What is computed of an index in 64 bits is not cut to 32, though the index itself is."""
    out = te.compute((1024,), lambda i: i.astype("int64") * 5_000_000_000 // 3 % 1_000_003, "out")
    actual = run(scheduled(out), target, dev, out=np.ones(1024, "int64"))
    np.testing.assert_array_equal(actual, np.arange(1024) * 5_000_000_000 // 3 % 1_000_003)


def test_a_short_circuit_does_not_read_what_is_out_of_bounds(target, dev):
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((8,), "int32"), b: T.Buffer((64,), "int32")):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("b"):
                v = T.axis.spatial(64, i)
                b[v] = T.if_then_else(v < 8 and a[v] > 3, a[v], -1)

    x = np.arange(8, dtype="int32")
    actual = run(tvm.IRModule({"main": main}), target, dev, x, out=np.ones(64, "int32"))
    np.testing.assert_array_equal(
        actual, np.where(np.arange(64) < 8, np.where(np.arange(64) > 3, np.arange(64), -1), -1)
    )


@pytest.mark.parametrize("name", ["fn", "var", "array", "kernel-1", "größe", "a b", "main"])
def test_a_kernel_may_have_any_name(name, target, dev):
    out = te.compute((64,), lambda i: i, "out")
    function = scheduled(out)["main"].with_attr("global_symbol", name)
    y = on_device(dev, np.zeros(64, "int32"))
    tvm.compile(tvm.IRModule({name: function}), target=target)[name](y)
    np.testing.assert_array_equal(y.numpy(), np.arange(64))
