"""Mathematical functions against NumPy, over the whole range of their arguments."""

import math

import numpy as np
import pytest
import tvm
from codegen_support import elementwise
from tvm import tirx

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e-45, 3.4e38]


def spread(rng, low=-40.0, high=38.0, signed=True):
    """Numbers of every magnitude between two powers of ten, with what is special."""
    x = 10.0 ** rng.uniform(low, high, 6000)
    near = rng.uniform(-12, 12, 6000)
    x = np.concatenate([x, -x, near, SPECIAL] if signed else [x, np.abs(near), SPECIAL])
    return x.astype("float32")


def near(actual, expected, ulps, absolute):
    """Which are within so many units in the last place of the exact result, or as special as it."""
    with np.errstate(over="ignore", invalid="ignore"):
        expected32 = expected.astype(actual.dtype)
        special = ~np.isfinite(expected32)
        alike = (actual == expected32) | (np.isnan(actual) & np.isnan(expected32))
        unit = np.spacing(np.abs(expected32)).astype("float64")
        # Results below the least normal number may be flushed to zero by a device.
        allowed = ulps * unit + absolute + np.finfo(actual.dtype).tiny
        close = np.abs(actual.astype("float64") - expected) <= allowed
    return np.where(special, alike, close)


def same(actual, expected, ulps, absolute=0.0, others=()):
    """All are near what is expected, or near what is in one of `others`."""
    right = near(actual, expected, ulps, absolute)
    for other in others:
        right |= near(actual, other, ulps, absolute)
    wrong = np.flatnonzero(~right)
    assert len(wrong) == 0, (len(wrong), wrong[:9], actual[wrong[:9]], expected[wrong[:9]])


def flushed(x):
    """Arguments as a device sees them that takes numbers below the least normal one for zero."""
    return np.where(np.abs(x) < np.finfo("float32").tiny, np.copysign(np.float32(0), x), x)


UNARY = {
    "exp": (np.exp, 3),
    "exp2": (np.exp2, 3),
    "exp10": (lambda x: 10.0**x, 4),
    "log": (np.log, 2),
    "log2": (np.log2, 4),
    "log10": (np.log10, 4),
    "log1p": (np.log1p, 4),
    "sqrt": (np.sqrt, 2),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 4),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 5),
    "erf": (np.vectorize(math.erf), 5),
    "sinh": (np.sinh, 6),
    "cosh": (np.cosh, 5),
    "tanh": (np.tanh, 4),
    "asinh": (np.arcsinh, 6),
    "acosh": (np.arccosh, 6),
    "atanh": (np.arctanh, 6),
    "sin": (np.sin, 4),
    "cos": (np.cos, 4),
    "tan": (np.tan, 6),
    "asin": (np.arcsin, 4),
    "acos": (np.arccos, 4),
    "atan": (np.arctan, 4),
    "floor": (np.floor, 0),
    "ceil": (np.ceil, 0),
    "trunc": (np.trunc, 0),
    "round": (np.round, 0),
    "nearbyint": (np.round, 0),
    "abs": (np.abs, 0),
}


@pytest.mark.parametrize("name", UNARY)
def test_a_function_is_right_over_its_whole_range(name, target, dev, rng):
    reference, ulps = UNARY[name]
    x = spread(rng)
    if name in ("round", "nearbyint", "floor", "ceil", "trunc"):
        x = np.concatenate([x, np.arange(-9, 9, 0.5, "float32")])
    actual = elementwise(getattr(tirx, name), target, dev, x)
    with np.errstate(all="ignore"):
        expected = reference(x.astype("float64"))
        other = reference(flushed(x).astype("float64"))
    # Where a zero of sine is near, the argument's last bit decides.
    absolute = 1e-9 if name in ("sin", "cos", "tan") else 0.0
    same(actual, expected, ulps, absolute, [other])


# TVM makes these of several operations, each of which rounds.
UNITS_OF_FLOAT16 = {"rsqrt": 2, "sigmoid": 3}


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_float16_is_right_to_a_unit(name, target, dev):
    reference, _ = UNARY[name]
    x = np.arange(0, 1 << 16, 7, "uint16").view("float16")
    actual = elementwise(getattr(tirx, name), target, dev, x)
    with np.errstate(all="ignore"):
        expected = reference(x.astype("float64"))
        largest = np.abs(expected) >= 65520
    expected[largest] = np.copysign(np.inf, expected[largest])
    same(actual, expected, UNITS_OF_FLOAT16.get(name, 1.01))


BINARY = {
    "pow": (np.power, 3),
    "atan2": (np.arctan2, 4),
    "fmod": (np.fmod, 0),
    "hypot": (np.hypot, 4),
    "copysign": (np.copysign, 0),
}


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_is_right_over_its_whole_range(name, target, dev, rng):
    reference, ulps = BINARY[name]
    x, y = spread(rng), spread(rng)
    small = rng.uniform(-30, 30, (2, 4000)).astype("float32")
    whole = np.round(small)
    positive = np.abs(small[0]) + np.float32(0.01)
    x = np.concatenate([rng.permutation(x), np.repeat(np.float32(SPECIAL), 13), positive, whole[0]])
    y = np.concatenate([rng.permutation(y), np.tile(np.float32(SPECIAL), 13), small[1], whole[1]])
    actual = elementwise(getattr(tirx, name), target, dev, x, y)
    with np.errstate(all="ignore"):
        expected, *others = (
            reference(a.astype("float64"), b.astype("float64"))
            for a in (x, flushed(x))
            for b in (y, flushed(y))
        )
    same(actual, expected, ulps, others=others)


def test_fma_and_ldexp(target, dev, rng):
    x, y, z = (rng.standard_normal(500).astype("float32") for _ in range(3))
    n = rng.integers(-160, 140, 500).astype("int32")
    actual = elementwise(
        lambda *v: tirx.call_intrin("float32", "tirx.fma", *v), target, dev, x, y, z
    )
    np.testing.assert_allclose(actual, x * y + z, rtol=1e-5, atol=1e-6)
    same(elementwise(tirx.ldexp, target, dev, x, n), np.ldexp(x.astype("float64"), n), 1)


def test_nextafter_steps_to_the_neighbour(target, dev, rng):
    x = rng.standard_normal(500).astype("float32")
    y = np.where(rng.integers(0, 2, 500), x, -x) * 2
    y[:20] = x[:20]
    actual = elementwise(tirx.nextafter, target, dev, x, y.astype("float32"))
    np.testing.assert_array_equal(actual, np.nextafter(x, y.astype("float32")))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_what_is_not_finite_is_told(name, dtype, target, dev):
    x = np.array(SPECIAL, dtype)
    actual = elementwise(lambda v: getattr(tirx, name)(v).astype("int32"), target, dev, x)
    np.testing.assert_array_equal(actual, getattr(np, name)(x).astype("int32"))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_bits_are_counted_in_the_types_own_width(dtype, target, dev, rng):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 300, dtype, endpoint=True) >> rng.integers(
        0, info.bits, 300
    ).astype(dtype)
    x[:3] = 0, 1, info.max
    bits = [int(v) & ((1 << info.bits) - 1) for v in x]
    actual = elementwise(tirx.popcount, target, dev, x)
    np.testing.assert_array_equal(actual, [v.bit_count() for v in bits])
    if info.bits >= 32:
        actual = elementwise(tirx.clz, target, dev, x)
        np.testing.assert_array_equal(actual, [info.bits - v.bit_length() for v in bits])


@pytest.mark.parametrize("name", ["max", "min"])
def test_max_and_min_take_nan_as_tvm_does_on_the_host(name, target, dev):
    pairs = [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan), (1.0, 2.0), (-np.inf, np.inf)]
    x, y = (np.array(column, "float32") for column in zip(*pairs))
    actual = elementwise(getattr(tirx, name), target, dev, x, y)
    op = np.greater if name == "max" else np.less
    np.testing.assert_array_equal(actual, np.where(op(x, y), x, y))


@pytest.mark.parametrize("name", ["exp", "sin", "erf"])
def test_float64_functions_that_no_device_has_are_refused(name, target, dev):
    with pytest.raises(
        Exception, match=rf"kernel `main_kernel`: `{name}` of float64 is not to be had"
    ):
        elementwise(getattr(tirx, name), target, dev, np.ones(8))
