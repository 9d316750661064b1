"""Mathematical functions that kernels call, right over the whole range of float32.

Vulkan's own are too loose or leave their range to the driver: `Exp` and `Sin` may be off by as much
as they like for large arguments, `Tanh` is infinity over infinity. So most are composed here of
arithmetic and of what every driver does exactly. float16 is computed in float32. The polynomials
are least-squares fits over the intervals named beside them, at Chebyshev's nodes.
"""

import math

from .builder import Value
from .dtypes import BOOL, FLOAT32, INT32, UINT32, UINT64
from .errors import refuse

# erf(x) / x in x², |x| <= 1.
_ERF_SMALL = (1.1283791, -0.37612626, 0.11283597, -0.026854329, 0.0051893122, -0.00080188550,
              7.8824975e-05)  # fmt: skip
# -log(1 - erf(x)), 1 <= x <= 4.
_ERF_LARGE = (-0.00030321296, 1.1301666, 0.63193709, 0.10997824, -0.026364718, 0.0047402222,
              -0.00059276953, 4.5590623e-05, -1.6140616e-06)  # fmt: skip
# (f(x) / x - 1) / x² in x².
_TANH = (-0.33333328, 0.13332783, -0.053852499, 0.021003641, -0.0061049479)  # |x| < 0.625
_SIN = (-0.16666667, 0.0083333319, -0.00019840064, 2.7246997e-06)  # |x| <= π/4
_SINH = (0.16666667, 0.0083333394, 0.00019838101, 2.8062891e-06)  # |x| < 1
_ASIN = (0.16666673, 0.074988090, 0.045010701, 0.026494272, 0.038206462)  # |x| <= 0.5
_ATAN = (-0.33333331, 0.19999549, -0.14264190, 0.10745836, -0.064578362)  # |x| <= tan(π/8)
# (cos(x) - 1 + x²/2) / x⁴ in x², |x| <= π/4.
_COS = (0.041666672, -0.0013889326, 2.4941082e-05, -4.0184563e-07)
# (log(1 + x) - x + x²/2) / x³, sqrt(1/2) <= 1 + x <= sqrt(2).
_LOG = (0.33333331, -0.24999990, 0.20000708, -0.16668476, 0.14249910, -0.12411130, 0.11661903,
        -0.11570708, 0.071478866)  # fmt: skip
# 2^x, |x| <= 1/2.
_EXP2 = (1.0, 0.69314718, 0.24022651, 0.055503272, 0.0096180253, 0.0013400433, 0.00015469732)

# log(2), log10(2) and π/2 in parts of few bits, so that small multiples of the first are exact.
_LN2 = (0.693359375, -2.12194440e-4)
_LOG10_2 = (0.301025390625, math.log10(2) - 0.301025390625)
_HALF_PI = (1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8)
# The bits of 2/π after 32 zeros.
_TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041)
_MANY_TURNS = 4096.0

_INF_BITS = 0x7F800000


class Functions:
    """Evaluates functions on values of a builder."""

    def __init__(self, builder):
        self._b = builder

    def call(self, name, arguments):
        """The function that TVM calls `name`, or None if there is none of that name."""
        # Errors that are known are taken out again, which a compiler could undo.
        self._b.exact = True
        try:
            return self._call(name, arguments)
        finally:
            self._b.exact = False

    def _call(self, name, arguments):
        first = arguments[0].dtype
        if name in _ANY_TYPE:
            return _ANY_TYPE[name](self, *arguments)
        function = _BY_NAME.get(name)
        if function is None or first.kind != "f":
            return None
        if first.bits == 64:
            native = _FLOAT64.get(name)
            if native is None:
                refuse(
                    f"`{name}` of float64 is not to be had on Vulkan devices",
                    "cast its argument to float32",
                )
            return native(self, *arguments)
        if first.bits == 32:
            return function(self, *arguments)
        if name == "nextafter":
            refuse("`nextafter` of float16 is not to be had", "cast its arguments to float32")
        single = [self._b.cast(a, FLOAT32) if a.dtype.kind == "f" else a for a in arguments]
        result = function(self, *single)
        return self._b.cast(result, first) if result.dtype.kind == "f" else result

    # Shorthands.

    def _k(self, like, number):
        return self._b.constant(like.dtype, number)

    def _bits(self, x):
        return self._b.bitcast(x, UINT32.of_lanes(len(x.lanes)))

    def _float(self, bits):
        return self._b.bitcast(bits, FLOAT32.of_lanes(len(bits.lanes)))

    def _poly(self, x, coefficients):
        result = self._k(x, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self._b.fma(result, x, self._k(x, coefficient))
        return result

    def _odd(self, x, coefficients):
        """x + x³ p(x²)."""
        square = self._b.mul(x, x)
        cube = self._b.mul(square, x)
        return self._b.fma(cube, self._poly(square, coefficients), x)

    def _less(self, x, n, parts):
        """x - n · (the sum of parts), from the first on, so that the products are exact."""
        for part in parts:
            x = self._b.sub(x, self._b.mul(n, self._k(n, part)))
        return x

    def _abs(self, x):
        return self._b.glsl("FAbs", x)

    def _is(self, op, x, number):
        return self._b.compare(op, x, self._k(x, number))

    def _in_range(self, a, c):
        """Two magnitudes by a power of two, and what takes it back: devices divide right by no more
        than 2^126, and may take numbers below the least normal one for zero."""
        b = self._b
        large = b.maximum(a, c)
        huge, tiny = self._is("gt", large, 2.0**64), self._is("lt", large, 2.0**-64)

        def chosen(if_huge, if_tiny):
            small = b.select(tiny, self._k(a, if_tiny), self._k(a, 1.0))
            return b.select(huge, self._k(a, if_huge), small)

        scale = chosen(2.0**-64, 2.0**64)
        return b.mul(a, scale), b.mul(c, scale), chosen(2.0**64, 2.0**-64)

    def _with_sign_of(self, magnitude, sign):
        b = self._b
        kept = b.binary("and", self._bits(magnitude), self._k(self._bits(magnitude), 0x7FFFFFFF))
        bit = b.binary("and", self._bits(sign), self._k(self._bits(sign), 0x80000000))
        return self._float(b.binary("or", kept, bit))

    def _is_nan(self, x):
        magnitude = self._magnitude_bits(x)
        return self._b.compare("gt", magnitude, self._k(magnitude, _INF_BITS))

    def _magnitude_bits(self, x):
        bits = self._bits(x)
        return self._b.binary("and", bits, self._k(bits, 0x7FFFFFFF))

    def _keep_nan(self, x, result):
        """`result`, but what is not a number stays so."""
        return self._b.select(self._is_nan(x), x, result)

    def _power_of_two(self, n):
        """2^n of an integer from -126 to 127."""
        b = self._b
        biased = b.add(n, self._k(n, 127))
        return self._float(b.cast(b.binary("shl", biased, self._k(n, 23)), UINT32))

    def _scaled(self, x, n):
        """x · 2^n, in two steps, so that neither leaves the range before the product does."""
        b = self._b
        n = b.minimum(b.maximum(n, self._k(n, -252)), self._k(n, 254))
        half = b.binary("shr", n, self._k(n, 1))
        rest = b.sub(n, half)
        return b.mul(b.mul(x, self._power_of_two(half)), self._power_of_two(rest))

    # Exponentials and logarithms.

    def exp(self, x):
        b = self._b
        within = b.minimum(b.maximum(x, self._k(x, -104.0)), self._k(x, 89.0))
        n = b.glsl("RoundEven", b.mul(within, self._k(x, 1 / math.log(2))))
        r = self._less(within, n, _LN2)
        power = self._poly(b.mul(r, self._k(x, 1 / math.log(2))), _EXP2)
        return self._keep_nan(x, self._scaled(power, self._b.cast(n, INT32)))

    def exp2(self, x):
        b = self._b
        within = b.minimum(b.maximum(x, self._k(x, -151.0)), self._k(x, 129.0))
        n = b.glsl("RoundEven", within)
        power = self._poly(b.sub(within, n), _EXP2)
        return self._keep_nan(x, self._scaled(power, self._b.cast(n, INT32)))

    def exp10(self, x):
        b = self._b
        within = b.minimum(b.maximum(x, self._k(x, -46.0)), self._k(x, 39.0))
        n = b.glsl("RoundEven", b.mul(within, self._k(x, math.log2(10))))
        r = self._less(within, n, _LOG10_2)
        power = self._poly(b.mul(r, self._k(x, math.log2(10))), _EXP2)
        return self._keep_nan(x, self._scaled(power, self._b.cast(n, INT32)))

    def _split(self, x):
        """(m, n) with x = (1 + m) · 2^n and 1 + m between sqrt(1/2) and sqrt(2)."""
        b = self._b
        small = self._is("lt", x, 1.17549435e-38)
        scaled = b.select(small, b.mul(x, self._k(x, 2.0**24)), x)
        bits = b.bitcast(scaled, INT32.of_lanes(len(x.lanes)))
        # The exponent, once the mantissa is moved so that sqrt(1/2) begins a new one.
        moved = b.sub(bits, self._k(bits, 0x3F3504F3))
        n = b.binary("shr", moved, self._k(bits, 23))
        mantissa = b.sub(bits, b.binary("shl", n, self._k(bits, 23)))
        m = b.sub(b.bitcast(mantissa, x.dtype), self._k(x, 1.0))
        n = b.sub(n, b.select(small, self._k(n, 24), self._k(n, 0)))
        return m, b.cast(n, FLOAT32)

    def _log_parts(self, m):
        """log(1 + m) = m + the second, which is small."""
        b = self._b
        square = b.mul(m, m)
        rest = b.fma(b.mul(square, m), self._poly(m, _LOG), b.mul(square, self._k(m, -0.5)))
        return rest

    def _log_ends(self, x, result):
        """The logarithm of 0, of infinity, and of what has none."""
        b = self._b
        result = b.select(self._is("eq", x, math.inf), x, result)
        result = b.select(self._is("eq", x, 0.0), self._k(x, -math.inf), result)
        result = b.select(self._is("lt", x, 0.0), self._k(x, math.nan), result)
        return self._keep_nan(x, result)

    def log(self, x):
        b = self._b
        m, n = self._split(x)
        low = b.fma(n, self._k(x, _LN2[1]), self._log_parts(m))
        result = b.fma(n, self._k(x, _LN2[0]), b.add(m, low))
        return self._log_ends(x, result)

    def _log_base(self, x, per_two, per_e):
        b = self._b
        m, n = self._split(x)
        natural = b.add(m, self._log_parts(m))
        return self._log_ends(x, b.fma(natural, self._k(x, per_e), b.mul(n, self._k(x, per_two))))

    def log2(self, x):
        return self._log_base(x, 1.0, 1 / math.log(2))

    def log10(self, x):
        return self._log_base(x, math.log10(2), 1 / math.log(10))

    def log1p(self, x):
        b = self._b
        small = b.add(x, self._log_parts(x))
        u = b.add(self._k(x, 1.0), x)
        # What the sum lost, added back in first order.
        lost = b.div(b.sub(x, b.sub(u, self._k(x, 1.0))), u)
        finite = self._is("lt", self._abs(x), 3e38)
        large = b.add(self.log(u), b.select(finite, lost, self._k(x, 0.0)))
        large = b.select(self._is("le", u, 0.0), self.log(u), large)
        inside = b.both(self._is("gt", x, -0.29), self._is("lt", x, 0.41))
        return self._keep_nan(x, b.select(inside, small, large))

    def expm1(self, x):
        b = self._b
        # Near zero 2 sinh(x/2) exp(x/2).
        half = b.mul(x, self._k(x, 0.5))
        small = b.mul(b.mul(self._k(x, 2.0), self._odd(half, _SINH)), self.exp(half))
        large = b.sub(self.exp(x), self._k(x, 1.0))
        return b.select(self._is("lt", self._abs(x), 1.0), small, large)

    def pow(self, x, y):
        b = self._b
        one, zero = self._k(x, 1.0), self._k(x, 0.0)
        magnitude = self._abs(x)
        result = self._pow_positive(magnitude, y)
        whole = b.compare("eq", b.glsl("Trunc", y), y)
        half = b.mul(y, self._k(y, 0.5))
        odd = b.both(whole, b.compare("ne", b.glsl("Trunc", half), half))
        negative = b.compare("ne", b.binary("and", self._bits(x), self._k(self._bits(x), 1 << 31)),
                             self._k(self._bits(x), 0))  # fmt: skip
        result = b.select(b.both(odd, negative), b.negate(result), result)
        no_root = b.both(b.no(whole), b.both(self._is("lt", x, 0.0), self._is("ne", x, -math.inf)))
        result = b.select(no_root, self._k(x, math.nan), result)
        unit = b.both(self._is("eq", x, -1.0), self._is("eq", self._abs(y), math.inf))
        result = b.select(unit, one, result)
        result = b.select(b.either(self._is_nan(x), self._is_nan(y)), b.add(x, y), result)
        return b.select(b.either(self._is("eq", x, 1.0), b.compare("eq", y, zero)), one, result)

    def _pow_positive(self, x, y):
        """x^y of x >= 0: 2^(y · log2(x)), with the logarithm and the product in two parts."""
        b = self._b
        m, n = self._split(x)
        # log2(1 + m) = high + low; the high part of few bits, so that its products are exact.
        rest = self._log_parts(m)
        per_e_high, per_e_low = 1.4423828125, 1 / math.log(2) - 1.4423828125
        m_high = self._few_bits(m)
        m_low = b.sub(m, m_high)
        high = b.mul(m_high, self._k(x, per_e_high))
        low = b.mul(m, self._k(x, per_e_low))
        low = b.fma(m_low, self._k(x, per_e_high), low)
        low = b.fma(rest, self._k(x, 1 / math.log(2)), low)
        total = b.add(n, high)
        low = b.add(low, b.sub(high, b.sub(total, n)))
        log_high = self._few_bits(b.add(total, low))
        log_low = b.add(b.sub(total, log_high), low)
        y_high = self._few_bits(y)
        y_low = b.sub(y, y_high)
        product = b.mul(y_high, log_high)
        small = b.fma(y, log_low, b.mul(y_low, log_high))
        whole = b.glsl("RoundEven", b.add(product, small))
        whole = b.minimum(b.maximum(whole, self._k(x, -252.0)), self._k(x, 254.0))
        fraction = b.add(b.sub(product, whole), small)
        result = self._scaled(self._poly(fraction, _EXP2), b.cast(whole, INT32))
        estimate = b.mul(y, b.add(total, low))
        infinity, zero = self._k(x, math.inf), self._k(x, 0.0)
        result = b.select(self._is("gt", estimate, 128.5), infinity, result)
        result = b.select(self._is("lt", estimate, -150.5), zero, result)
        # Where the logarithm has no value, the sign of y and the side of 1 decide.
        up = b.compare("eq", self._is("gt", x, 1.0), self._is("gt", y, 0.0))
        ends = b.select(up, infinity, zero)
        at_end = b.either(b.either(self._is("eq", x, 0.0), self._is("eq", x, math.inf)),
                          self._is("eq", self._abs(y), math.inf))  # fmt: skip
        return b.select(at_end, ends, result)

    def _few_bits(self, x):
        """x with the lower half of its mantissa cut off."""
        bits = self._bits(x)
        return self._float(self._b.binary("and", bits, self._k(bits, 0xFFFFF000)))

    def sqrt(self, x):
        return self._b.glsl("Sqrt", x)

    def rsqrt(self, x):
        return self._b.div(self._k(x, 1.0), self._b.glsl("Sqrt", x))

    def sigmoid(self, x):
        b = self._b
        one = self._k(x, 1.0)
        return b.div(one, b.add(one, self.exp(b.negate(x))))

    def erf(self, x):
        b = self._b
        size = self._abs(x)
        small = b.mul(x, self._poly(b.mul(x, x), _ERF_SMALL))
        within = b.minimum(size, self._k(x, 4.0))
        large = b.sub(self._k(x, 1.0), self.exp(b.negate(self._poly(within, _ERF_LARGE))))
        result = b.select(self._is("lt", size, 1.0), small, self._with_sign_of(large, x))
        return self._keep_nan(x, result)

    # Hyperbolic functions.

    def tanh(self, x):
        b = self._b
        size = self._abs(x)
        e = self.exp(b.mul(b.minimum(size, self._k(x, 20.0)), self._k(x, -2.0)))
        one = self._k(x, 1.0)
        large = self._with_sign_of(b.div(b.sub(one, e), b.add(one, e)), x)
        result = b.select(self._is("lt", size, 0.625), self._odd(x, _TANH), large)
        return self._keep_nan(x, result)

    def sinh(self, x):
        b = self._b
        size = self._abs(x)
        # exp(x/2)² overflows only where the result does.
        half = self.exp(b.mul(size, self._k(x, 0.5)))
        grown = b.mul(b.mul(half, self._k(x, 0.5)), half)
        shrunk = b.mul(self.exp(b.negate(size)), self._k(x, 0.5))
        large = self._with_sign_of(b.sub(grown, shrunk), x)
        return self._keep_nan(x, b.select(self._is("lt", size, 1.0), self._odd(x, _SINH), large))

    def cosh(self, x):
        b = self._b
        size = self._abs(x)
        half = self.exp(b.mul(size, self._k(x, 0.5)))
        grown = b.mul(b.mul(half, self._k(x, 0.5)), half)
        return b.add(grown, b.mul(self.exp(b.negate(size)), self._k(x, 0.5)))

    def asinh(self, x):
        b = self._b
        size = self._abs(x)
        one = self._k(x, 1.0)
        square = b.mul(size, size)
        # log1p(x + x² / (1 + sqrt(1 + x²))), and for large x log(2x).
        root = b.glsl("Sqrt", b.add(square, one))
        small = self.log1p(b.add(size, b.div(square, b.add(one, root))))
        large = b.add(self.log(size), self._k(x, math.log(2)))
        result = b.select(self._is("lt", size, 1e9), small, large)
        return self._keep_nan(x, self._with_sign_of(result, x))

    def acosh(self, x):
        b = self._b
        t = b.sub(x, self._k(x, 1.0))
        root = b.glsl("Sqrt", b.add(b.mul(t, self._k(x, 2.0)), b.mul(t, t)))
        small = self.log1p(b.add(t, root))
        large = b.add(self.log(x), self._k(x, math.log(2)))
        result = b.select(self._is("lt", x, 1e9), small, large)
        result = b.select(self._is("lt", x, 1.0), self._k(x, math.nan), result)
        return self._keep_nan(x, result)

    def atanh(self, x):
        b = self._b
        size = self._abs(x)
        one = self._k(x, 1.0)
        ratio = b.div(b.mul(size, self._k(x, 2.0)), b.sub(one, size))
        result = b.mul(self.log1p(ratio), self._k(x, 0.5))
        result = b.select(self._is("gt", size, 1.0), self._k(x, math.nan), result)
        return self._keep_nan(x, self._with_sign_of(result, x))

    # Circular functions.

    def _quadrant(self, x):
        """(r, q): |x| less q quarter turns, with |r| <= π/4."""
        lanes = [self._quadrant_lane(self._b.lane(x, k)) for k in range(len(x.lanes))]
        return self._b.join([r for r, _ in lanes]), self._b.join([q for _, q in lanes])

    def _quadrant_lane(self, x):
        b = self._b
        size = self._abs(x)
        pair = []

        def few():
            n = b.glsl("RoundEven", b.mul(size, self._k(x, 2 / math.pi)))
            r = self._less(size, n, _HALF_PI)
            pair.append(b.cast(n, UINT32))
            return b.join([r, b.bitcast(pair[-1], FLOAT32)])

        def many():
            r, q = self._reduced_by_bits(size)
            return b.join([r, b.bitcast(q, FLOAT32)])

        both = b.choose(self._is("lt", size, _MANY_TURNS), few, many)
        return b.lane(both, 0), b.bitcast(b.lane(both, 1), UINT32)

    def _reduced_by_bits(self, size):
        """By the bits of 2/π that decide: the product's fraction, in 64 bits, is exact enough."""
        b = self._b
        w = b.writer
        k = b.u32
        bits = self._bits(size)
        exponent = b.sub(b.binary("shr", bits, k(23)), k(127 + 23))
        mantissa = b.binary("or", b.binary("and", bits, k(0x7FFFFF)), k(0x800000))
        # The window of 2/π begins with the two bits before the point.
        start = b.add(exponent, k(30))
        word, shift = b.binary("shr", start, k(5)), b.binary("and", start, k(31))
        words = [k(value) for value in _TWO_OVER_PI[:3]]
        for index in range(1, len(_TWO_OVER_PI) - 2):
            here = b.compare("eq", word, k(index))
            new = _TWO_OVER_PI[index : index + 3]
            words = [b.select(here, k(value), old) for value, old in zip(new, words)]

        def joined(first, second):
            rest = b.binary("shr", b.binary("shr", second, k(1)), b.sub(k(31), shift))
            return b.binary("or", b.binary("shl", first, shift), rest)

        high, low = joined(words[0], words[1]), joined(words[1], words[2])
        uint = b.type(UINT32)
        pair = w.value("UMulExtended", w.once("TypeStruct", uint, uint), low.id, mantissa.id)
        product_low = Value(UINT32, (w.value("CompositeExtract", uint, pair, 0),))
        carried = Value(UINT32, (w.value("CompositeExtract", uint, pair, 1),))
        product = b.add(carried, b.mul(high, mantissa))
        q = b.binary("shr", b.add(product, k(1 << 29)), k(30))
        fraction = b.cast(b.sub(product, b.binary("shl", q, k(30))), INT32)
        turn = b.fma(b.cast(product_low, FLOAT32), b.f32(2.0**-62),
                     b.mul(b.cast(fraction, FLOAT32), b.f32(2.0**-30)))  # fmt: skip
        return b.mul(turn, b.f32(math.pi / 2)), q

    def _sin_cos(self, r):
        b = self._b
        square = b.mul(r, r)
        cos = b.fma(b.mul(square, square), self._poly(square, _COS),
                    b.fma(square, self._k(r, -0.5), self._k(r, 1.0)))  # fmt: skip
        return self._odd(r, _SIN), cos

    def _bit(self, q, number):
        masked = self._b.binary("and", q, self._k(q, number))
        return self._b.compare("ne", masked, self._k(q, 0))

    def _infinite_has_none(self, x, result):
        finite = self._b.compare("lt", self._magnitude_bits(x),
                                 self._k(self._bits(x), _INF_BITS))  # fmt: skip
        return self._b.select(finite, result, self._k(x, math.nan))

    def sin(self, x):
        b = self._b
        r, q = self._quadrant(x)
        sin, cos = self._sin_cos(r)
        result = b.select(self._bit(q, 1), cos, sin)
        result = b.select(self._bit(q, 2), b.negate(result), result)
        result = b.select(self._is("lt", x, 0.0), b.negate(result), result)
        return self._infinite_has_none(x, b.select(self._is("eq", x, 0.0), x, result))

    def cos(self, x):
        b = self._b
        r, q = self._quadrant(x)
        sin, cos = self._sin_cos(r)
        result = b.select(self._bit(q, 1), sin, cos)
        turned = self._bit(b.add(q, self._k(q, 1)), 2)
        return self._infinite_has_none(x, b.select(turned, b.negate(result), result))

    def tan(self, x):
        b = self._b
        r, q = self._quadrant(x)
        sin, cos = self._sin_cos(r)
        odd = self._bit(q, 1)
        result = b.div(b.select(odd, cos, sin), b.select(odd, b.negate(sin), cos))
        result = b.select(self._is("lt", x, 0.0), b.negate(result), result)
        return self._infinite_has_none(x, b.select(self._is("eq", x, 0.0), x, result))

    def asin(self, x):
        b = self._b
        size = self._abs(x)
        # Above 1/2: π/2 - 2 asin(sqrt((1 - x) / 2)).
        z = b.glsl("Sqrt", b.mul(b.sub(self._k(x, 1.0), size), self._k(x, 0.5)))
        far = b.fma(self._odd(z, _ASIN), self._k(x, -2.0), self._k(x, math.pi / 2))
        result = b.select(self._is("le", size, 0.5), self._odd(x, _ASIN),
                          self._with_sign_of(far, x))  # fmt: skip
        return self._outside_has_none(x, size, result)

    def acos(self, x):
        b = self._b
        size = self._abs(x)
        z = b.glsl("Sqrt", b.mul(b.sub(self._k(x, 1.0), size), self._k(x, 0.5)))
        far = b.mul(self._odd(z, _ASIN), self._k(x, 2.0))
        far = b.select(self._is("lt", x, 0.0), b.sub(self._k(x, math.pi), far), far)
        near = b.sub(self._k(x, math.pi / 2), self._odd(x, _ASIN))
        return self._outside_has_none(x, size, b.select(self._is("le", size, 0.5), near, far))

    def _outside_has_none(self, x, size, result):
        b = self._b
        return self._keep_nan(x, b.select(self._is("gt", size, 1.0), self._k(x, math.nan), result))

    def _atan_positive(self, x):
        b = self._b
        far, middle = self._is("gt", x, 2.41421356), self._is("gt", x, 0.41421356)
        one = self._k(x, 1.0)
        turned = b.div(b.sub(x, one), b.add(x, one))
        r = b.select(far, b.negate(b.div(one, x)), b.select(middle, turned, x))
        offset = b.select(
            far,
            self._k(x, math.pi / 2),
            b.select(middle, self._k(x, math.pi / 4), self._k(x, 0.0)),
        )
        return b.add(offset, self._odd(r, _ATAN))

    def atan(self, x):
        result = self._with_sign_of(self._atan_positive(self._abs(x)), x)
        return self._keep_nan(x, result)

    def atan2(self, y, x):
        b = self._b
        size_y, size_x, _ = self._in_range(self._abs(y), self._abs(x))
        infinite = b.both(self._is("eq", size_y, math.inf), self._is("eq", size_x, math.inf))
        ratio = b.select(b.compare("eq", size_y, size_x), self._k(x, 1.0), b.div(size_y, size_x))
        ratio = b.select(infinite, self._k(x, 1.0), ratio)
        angle = self._atan_positive(ratio)
        angle = b.select(self._is("eq", size_y, 0.0), self._k(x, 0.0), angle)
        bits = self._bits(x)
        left = b.compare("ge", bits, self._k(bits, 1 << 31))
        angle = b.select(left, b.sub(self._k(x, math.pi), angle), angle)
        angle = self._with_sign_of(angle, y)
        return b.select(b.either(self._is_nan(x), self._is_nan(y)), b.add(x, y), angle)

    # Rounding, signs and parts.

    def floor(self, x):
        return self._b.glsl("Floor", x)

    def ceil(self, x):
        return self._b.glsl("Ceil", x)

    def trunc(self, x):
        return self._b.glsl("Trunc", x)

    def round_even(self, x):
        return self._b.glsl("RoundEven", x)

    def round_away(self, x):
        b = self._b
        whole = b.glsl("Trunc", x)
        beyond = self._is("ge", self._abs(b.sub(x, whole)), 0.5)
        away = b.add(whole, self._with_sign_of(self._k(x, 1.0), x))
        return b.select(beyond, away, whole)

    def fabs(self, x):
        return self._abs(x)

    def fma(self, x, y, z):
        return self._b.fma(x, y, z)

    def copysign(self, x, y):
        return self._with_sign_of(x, y)

    def fmod(self, x, y):
        """By subtraction of y · 2^k from the top, each step exact."""
        b = self._b
        lanes = [self._fmod_lane(b.lane(x, k), b.lane(y, k)) for k in range(len(x.lanes))]
        return b.join(lanes)

    def _fmod_lane(self, x, y):
        b, w = self._b, self._b.writer
        k = b.u32
        bits_x, bits_y = self._magnitude_bits(x), self._magnitude_bits(y)
        usual = b.both(
            b.both(b.compare("gt", bits_y, k(0)), b.compare("le", bits_y, k(_INF_BITS))),
            b.compare("lt", bits_x, k(_INF_BITS)),
        )

        def reduced():
            (mx, ex), (my, ey) = self._integer_parts(bits_x), self._integer_parts(bits_y)
            start = w.new_id()
            head, test, body, after, done = (w.new_id() for _ in range(5))
            b.branch(start)
            b.label(start)
            b.branch(head)
            b.label(head)
            uint = b.type(UINT32)
            next_m, next_e = w.new_id(), w.new_id()
            m = Value(UINT32, (w.value("Phi", uint, mx.id, start, next_m, after),))
            e = Value(INT32, (w.value("Phi", uint, ex.id, start, next_e, after),))
            w.effect("LoopMerge", done, after, 0)
            b.branch(test)
            b.label(test)
            m_less = b.select(b.compare("ge", m, my), b.sub(m, my), m)
            w.effect("BranchConditional", b.compare("gt", e, ey).id, body, done)
            b.open = False
            b.label(body)
            w.named("ShiftLeftLogical", uint, next_m, m_less.id, k(1).id)
            w.named("ISub", uint, next_e, e.id, k(1).id)
            b.branch(after)
            b.label(after)
            b.branch(head)
            b.label(done)
            rest = self._from_parts(m_less, e)
            return self._with_sign_of(rest, x)

        below = b.compare("lt", bits_x, bits_y)
        nan = self._k(x, math.nan)
        return b.choose(
            b.both(usual, b.no(below)),
            reduced,
            lambda: b.select(usual, x, b.select(b.both(below, b.compare(
                "le", bits_y, k(_INF_BITS))), x, nan)),
        )  # fmt: skip

    def _integer_parts(self, bits):
        """(m, e) of a positive number m · 2^(e - 150), where m has exactly 24 bits."""
        b, k = self._b, self._b.u32
        exponent = b.cast(b.binary("shr", bits, k(23)), INT32)
        mantissa = b.binary("and", bits, k(0x7FFFFF))
        normal = b.compare("gt", exponent, self._k(exponent, 0))
        m = b.select(normal, b.binary("or", mantissa, k(0x800000)), mantissa)
        e = b.select(normal, exponent, self._k(exponent, 1))
        missing = b.sub(self._clz32(m), self._k(e, 8))
        return b.binary("shl", m, b.cast(missing, UINT32)), b.sub(e, missing)

    def _from_parts(self, m, e):
        return self._scaled(self._b.cast(m, FLOAT32), self._b.sub(e, self._k(e, 150)))

    def ldexp(self, x, n):
        return self._scaled(x, self._b.cast(n, INT32))

    def hypot(self, x, y):
        b = self._b
        a, c, unscale = self._in_range(self._abs(x), self._abs(y))
        large, small = b.maximum(a, c), b.minimum(a, c)
        ratio = b.div(small, large)
        result = b.mul(large, b.glsl("Sqrt", b.fma(ratio, ratio, self._k(x, 1.0))))
        result = b.select(self._is("eq", large, 0.0), large, result)
        result = b.mul(result, unscale)
        result = b.select(b.either(self._is_nan(x), self._is_nan(y)), b.add(x, y), result)
        infinite = b.either(self._is("eq", a, math.inf), self._is("eq", c, math.inf))
        return b.select(infinite, self._k(x, math.inf), result)

    def nextafter(self, x, y):
        b = self._b
        bits = b.bitcast(x, INT32.of_lanes(len(x.lanes)))
        # Away from zero the bits grow, whatever the sign.
        away = b.compare("eq", b.compare("gt", y, x), self._is("gt", x, 0.0))
        stepped = b.add(bits, b.select(away, self._k(bits, 1), self._k(bits, -1)))
        result = b.bitcast(stepped, x.dtype)
        least = self._with_sign_of(self._k(x, 1.401298464e-45), y)
        result = b.select(self._is("eq", x, 0.0), least, result)
        result = b.select(b.compare("eq", x, y), y, result)
        return b.select(b.either(self._is_nan(x), self._is_nan(y)), b.add(x, y), result)

    # Of any type.

    def isnan(self, x):
        if x.dtype.kind != "f":
            return self._b.constant(BOOL.of_lanes(len(x.lanes)), False)
        if x.dtype.bits == 64:
            return self._b.compare("ne", x, x)
        return self._is_nan(self._b.cast(x, FLOAT32))

    def isinf(self, x):
        if x.dtype.kind != "f":
            return self._b.constant(BOOL.of_lanes(len(x.lanes)), False)
        if x.dtype.bits == 64:
            return self._is("eq", self._abs(x), math.inf)
        magnitude = self._magnitude_bits(self._b.cast(x, FLOAT32))
        return self._b.compare("eq", magnitude, self._k(magnitude, _INF_BITS))

    def isfinite(self, x):
        return self._b.no(self._b.either(self.isnan(x), self.isinf(x)))

    def absolute(self, x):
        if x.dtype.kind == "f":
            return self._abs(x)
        zero = self._b.constant(x.dtype, 0, x.narrow)
        return self._b.maximum(x, self._b.sub(zero, x)) if x.dtype.kind == "i" else x

    def popcount(self, x):
        """Of the type's own bits: those that extend a small integer do not count."""
        b = self._b
        x = b.widen(x)
        if x.dtype.bits == 64:
            low, high = self._halves(x)
            count = b.add(self._count(low), self._count(high))
            return b.cast(count, x.dtype)
        unsigned = b.cast(x, UINT32 if x.dtype.bits == 32 else x.dtype._replace(kind="u"))
        return Value(x.dtype, self._count(unsigned).lanes)

    def _count(self, x):
        return self._b.each("BitCount", INT32, x)

    def _halves(self, x):
        b = self._b
        bits = b.cast(x, UINT64)
        shift = self._k(bits, 32)
        return b.cast(bits, UINT32), b.cast(b.binary("shr", bits, shift), UINT32)

    def clz(self, x):
        b = self._b
        x = b.widen(x)
        if x.dtype.bits == 64:
            low, high = self._halves(x)
            below = b.add(self._clz32(low), self._k(b.cast(low, INT32), 32))
            result = b.select(self._is("eq", high, 0), below, self._clz32(high))
            return b.cast(result, INT32)
        unsigned = b.cast(x, UINT32 if x.dtype.bits == 32 else x.dtype._replace(kind="u"))
        result = self._clz32(unsigned)
        return b.sub(result, self._k(result, 32 - x.dtype.bits))

    def _clz32(self, x):
        """31 less the index of the highest bit, which is -1 of zero."""
        b = self._b
        lanes = tuple(b.writer.glsl("FindUMsb", b.type(INT32), lane) for lane in x.lanes)
        top = Value(INT32.of_lanes(len(lanes)), lanes)
        return b.sub(self._k(top, 31), top)


_F = Functions
_BY_NAME = {
    "exp": _F.exp, "exp2": _F.exp2, "exp10": _F.exp10, "log": _F.log, "log2": _F.log2,
    "log10": _F.log10, "log1p": _F.log1p, "expm1": _F.expm1, "pow": _F.pow, "sqrt": _F.sqrt,
    "rsqrt": _F.rsqrt, "sigmoid": _F.sigmoid, "erf": _F.erf, "tanh": _F.tanh, "sinh": _F.sinh,
    "cosh": _F.cosh, "asinh": _F.asinh, "acosh": _F.acosh, "atanh": _F.atanh, "sin": _F.sin,
    "cos": _F.cos, "tan": _F.tan, "asin": _F.asin, "acos": _F.acos, "atan": _F.atan,
    "atan2": _F.atan2, "floor": _F.floor, "ceil": _F.ceil, "trunc": _F.trunc,
    "round": _F.round_even, "nearbyint": _F.round_even, "rint": _F.round_even,
    "round_away": _F.round_away, "fma": _F.fma,
    "copysign": _F.copysign, "fmod": _F.fmod, "ldexp": _F.ldexp, "hypot": _F.hypot,
    "nextafter": _F.nextafter,
}  # fmt: skip

_ANY_TYPE = {
    "isnan": _F.isnan, "isinf": _F.isinf, "isfinite": _F.isfinite, "abs": _F.absolute,
    "fabs": _F.absolute, "popcount": _F.popcount, "clz": _F.clz,
}  # fmt: skip

_FLOAT64 = {
    name: _BY_NAME[name]
    for name in ("sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "nearbyint", "rint", "fma")
}
