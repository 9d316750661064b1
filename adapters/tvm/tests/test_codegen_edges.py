"""What random kernels reach seldom: values at the edge of 32 bits, and names with two meanings."""

import numpy as np
import pytest
import tvm
from codegen_support import elementwise, on_device, run
from dlhal_tvm import ir
from dlhal_tvm.ranges import Ranges
from tvm import tirx

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)


def script(arguments, body):
    """A kernel of eight threads `t`."""
    text = f"@T.prim_func(s_tir=True)\ndef main({arguments}):\n"
    text += '    for t in T.thread_binding(8, thread="threadIdx.x"):\n'
    text += "".join(f"        {line}\n" for line in body)
    return tvm.IRModule({"main": tvm.script.from_source(text)})


@pytest.mark.parametrize("stride", [2_000_000_000, -2_000_000_000, 3_000_000_000])
def test_the_lanes_of_a_ramp_leave_32_bits_though_its_base_and_stride_do_not(stride, target, dev):
    body = [
        "for v in T.vectorized(4):",
        f'    out[t * 4 + v] = T.Cast("int64", v) * T.int64({stride}) + T.Cast("int64", t)',
    ]
    actual = run(
        script('out: T.Buffer((32,), "int64")', body), target, dev, out=np.ones(32, "int64")
    )
    t, v = np.divmod(np.arange(32), 4)
    np.testing.assert_array_equal(actual, v * stride + t)


def test_a_shift_by_more_than_32_of_what_fits_32_bits(target, dev):
    counts = np.array([0, 1, 31, 32, 33, 40, 62, 63])
    x = np.array([-(1 << 31), -7, -1, 0, 1, 5, 99, (1 << 31) - 1], "int32")
    arguments = (
        'x: T.Buffer((8,), "int32"), s: T.Buffer((8,), "int64"), out: T.Buffer((64,), "int64")'
    )
    body = [
        "for k in range(8):",
        '    out[t * 8 + k] = T.shift_right(T.Cast("int64", x[t]), s[k])',
    ]
    actual = run(script(arguments, body), target, dev, x, counts, out=np.ones(64, "int64"))
    np.testing.assert_array_equal(actual.reshape(8, 8), x.astype("int64")[:, None] >> counts)


@pytest.mark.parametrize("n", [7, 0, -1, -3_000_000_000, -(1 << 62), 1 << 62])
def test_a_loop_whose_end_may_be_far_below_its_begin(n, target, dev):
    body = [
        "out[t] = T.int64(0)",
        "for k in range(T.int64(0), T.min(n, T.int64(20))):",
        "    out[t] = out[t] + k + T.int64(1)",
    ]
    mod = script('n: T.int64, out: T.Buffer((8,), "int64")', body)
    out = on_device(dev, np.ones(8, "int64"))
    tvm.compile(mod, target=target)["main"](n, out)
    turns = min(max(n, 0), 20)
    np.testing.assert_array_equal(out.numpy(), turns * (turns + 1) // 2)


def test_the_least_of_32_bits_over_minus_one_in_64(target, dev):
    x = np.array([-(1 << 31), -(1 << 31), 7, -7, 7, -7, 0, 1], "int32")
    y = np.array([-1, 2, -1, -1, -2, -2, -1, 3], "int32")
    arguments = (
        'x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32"), out: T.Buffer((32,), "int64")'
    )
    names = ("floordiv", "floormod", "truncdiv", "truncmod")
    body = [
        f'out[t * 4 + {k}] = T.{name}(T.Cast("int64", x[t]), T.Cast("int64", y[t]))'
        for k, name in enumerate(names)
    ]
    actual = run(script(arguments, body), target, dev, x, y, out=np.ones(32, "int64"))
    a, b = x.astype("int64"), y.astype("int64")
    rest = np.fmod(a, b)
    expected = np.stack([a // b, a % b, (a - rest) // b, rest], 1).ravel()
    np.testing.assert_array_equal(actual, expected)


def test_halves_are_rounded_as_the_caller_of_the_function_has_it(target, dev):
    x = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, 8388609, -0.2, np.inf], "float32")
    away = np.copysign(np.floor(np.abs(x.astype("float64")) + 0.5), x)
    cases = [(tirx.round, np.rint(x))]
    if not ir.round_is_called_as_c_does():
        cases.append((lambda v: tirx.call_pure_extern("float32", "roundf", v), away))
    for function, expected in cases:
        np.testing.assert_array_equal(elementwise(function, target, dev, x), expected)


def test_a_variable_that_is_bound_again_has_its_new_range():
    ranges, v = Ranges(), tirx.Var("v", "int64")
    product = v * 3
    ranges.bind(v, 0, 10)
    assert ranges.of(product) == (0, 30)
    ranges.bind(v, -5, 1 << 40)
    assert ranges.of(product) == (-15, 3 << 40)
