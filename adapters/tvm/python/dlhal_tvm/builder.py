"""Values of a kernel and what can be done with them, as SPIR-V.

A value is one id for each lane. Integers of 8 and 16 bits are held in 32, extended by their sign
or by zeros, so that arithmetic needs no capability beyond Vulkan's minimum; a 64-bit integer that
is known to fit is held in 32 bits, too (`narrow`).
"""

from typing import NamedTuple

import numpy as np

from .dtypes import BOOL, FLOAT16, FLOAT32, INT32, UINT32, DType
from .errors import refuse


class Value(NamedTuple):
    dtype: DType
    lanes: tuple
    narrow: bool = False

    @property
    def id(self):
        return self.lanes[0]


_FLOAT_OPS = {"add": "FAdd", "sub": "FSub", "mul": "FMul", "div": "FDiv"}
_INT_OPS = {"add": "IAdd", "sub": "ISub", "mul": "IMul", "and": "BitwiseAnd", "or": "BitwiseOr",
            "xor": "BitwiseXor", "shl": "ShiftLeftLogical"}  # fmt: skip
_SIGNED_OPS = {"div": "SDiv", "shr": "ShiftRightArithmetic"}
_UNSIGNED_OPS = {"div": "UDiv", "shr": "ShiftRightLogical"}
# Results that may leave the range of fewer than 32 bits.
_GROWING = {"add", "sub", "mul", "shl", "div"}
_COMPARE = {
    "eq": ("FOrdEqual", "IEqual", "IEqual"),
    "ne": ("FUnordNotEqual", "INotEqual", "INotEqual"),
    "lt": ("FOrdLessThan", "SLessThan", "ULessThan"),
    "le": ("FOrdLessThanEqual", "SLessThanEqual", "ULessThanEqual"),
    "gt": ("FOrdGreaterThan", "SGreaterThan", "UGreaterThan"),
    "ge": ("FOrdGreaterThanEqual", "SGreaterThanEqual", "UGreaterThanEqual"),
}


class Builder:
    """Appends to one kernel. `device` says what its device has."""

    def __init__(self, writer, device):
        self.writer = writer
        self.device = device
        self.block = None
        self.open = False
        # Whether float arithmetic is done as written, neither contracted nor reordered.
        self.exact = False

    # Types and constants.

    def type(self, dtype, narrow=False):
        """The id of the type that a lane of `dtype` has in the kernel."""
        if dtype.kind == "b":
            return self.writer.once("TypeBool")
        bits = 32 if narrow else dtype.register_bits
        if dtype.kind == "f":
            if bits != 32:
                self.need(f"Float{bits}", dtype)
            return self.writer.once("TypeFloat", bits)
        if bits == 64:
            self.need("Int64", dtype)
        return self.writer.once("TypeInt", bits, 0)

    def need(self, capability, dtype):
        self.device.check(capability, dtype)
        self.writer.capability(capability)

    def constant(self, dtype, number, narrow=False):
        """`number` in every lane."""
        type_id = self.type(dtype, narrow)
        if dtype.kind == "b":
            one = self.writer.truth(type_id, bool(number))
        elif dtype.kind == "f":
            raw = np.asarray(number, dtype=f"<f{dtype.bits // 8}").tobytes()
            raw += b"\0" * (-len(raw) % 4)
            one = self.writer.constant(type_id, *np.frombuffer(raw, "<u4").tolist())
        elif dtype.bits == 64 and not narrow:
            number = int(number) & 0xFFFF_FFFF_FFFF_FFFF
            one = self.writer.constant(type_id, number & 0xFFFF_FFFF, number >> 32)
        else:
            if dtype.bits < 32:
                number = _wrap(int(number), dtype)
            one = self.writer.constant(type_id, int(number) & 0xFFFF_FFFF)
        return Value(dtype, (one,) * dtype.lanes, narrow)

    def f32(self, number):
        return self.constant(FLOAT32, number)

    def u32(self, number):
        return self.constant(UINT32, number)

    # Lane by lane.

    def each(self, op, dtype, *operands, narrow=False):
        type_id = self.type(dtype, narrow)
        rows = zip(*map(_lanes, operands), strict=True)
        lanes = tuple(self.writer.value(op, type_id, *ids) for ids in rows)
        return Value(dtype.of_lanes(len(lanes)), lanes, narrow)

    def glsl(self, name, *operands):
        dtype = operands[0].dtype
        type_id = self.type(dtype)
        rows = zip(*map(_lanes, operands), strict=True)
        return Value(dtype, tuple(self.writer.glsl(name, type_id, *ids) for ids in rows))

    def lane(self, value, index):
        return Value(value.dtype.scalar, (value.lanes[index],), value.narrow)

    def join(self, values):
        """One value with the lanes of all."""
        if len({value.narrow for value in values}) > 1:
            values = [self.widen(value) for value in values]
        lanes = tuple(lane for value in values for lane in value.lanes)
        return Value(values[0].dtype.of_lanes(len(lanes)), lanes, values[0].narrow)

    def broadcast(self, value, lanes):
        return Value(value.dtype.of_lanes(lanes), value.lanes * lanes, value.narrow)

    # Integers of 64 bits.

    def widen(self, value):
        """The value in all its bits."""
        if not value.narrow:
            return value
        type_id = self.type(value.dtype)
        lanes = tuple(self.writer.value("SConvert", type_id, lane) for lane in value.lanes)
        return Value(value.dtype, lanes)

    def low(self, value):
        """The low 32 bits of an integer, as they are."""
        if value.narrow or value.dtype.register_bits == 32:
            return value
        type_id = self.type(UINT32)
        lanes = tuple(self.writer.value("UConvert", type_id, lane) for lane in value.lanes)
        return Value(value.dtype, lanes, True)

    def alike(self, a, b):
        """Both in as many bits."""
        return (a, b) if a.narrow == b.narrow else (self.widen(a), self.widen(b))

    # Operations.

    def binary(self, op, a, b):
        a, b = self.alike(a, b)
        dtype = a.dtype
        if dtype.kind == "f":
            return self._as_written(self.each(_FLOAT_OPS[op], dtype, a, b))
        if dtype.kind == "b":
            return self._of_truths(op, a, b)
        table = _SIGNED_OPS if dtype.kind == "i" else _UNSIGNED_OPS
        result = self.each(_INT_OPS.get(op) or table[op], dtype, a, b, narrow=a.narrow)
        return self._wrapped(result) if op in _GROWING else result

    def _as_written(self, value):
        if self.exact:
            for lane in value.lanes:
                self.writer.decorate(lane, "NoContraction")
        return value

    def _of_truths(self, op, a, b):
        names = {"and": "LogicalAnd", "mul": "LogicalAnd", "or": "LogicalOr", "add": "LogicalOr",
                 "xor": "LogicalNotEqual"}  # fmt: skip
        if op not in names:
            refuse(f"truth values cannot be operands of `{op}`", "cast them to int32 first")
        return self.each(names[op], BOOL, a, b)

    def _wrapped(self, value):
        """Brings a result back into its 8 or 16 bits."""
        if value.dtype.bits >= 32:
            return value
        op = "BitFieldSExtract" if value.dtype.kind == "i" else "BitFieldUExtract"
        lanes = value.dtype.lanes
        zero = self.constant(UINT32.of_lanes(lanes), 0)
        count = self.constant(UINT32.of_lanes(lanes), value.dtype.bits)
        return self.each(op, value.dtype, value, zero, count)

    def add(self, a, b):
        return self.binary("add", a, b)

    def sub(self, a, b):
        return self.binary("sub", a, b)

    def mul(self, a, b):
        return self.binary("mul", a, b)

    def div(self, a, b):
        return self.binary("div", a, b)

    def fma(self, a, b, c):
        return self.glsl("Fma", a, b, c)

    def negate(self, a):
        if a.dtype.kind == "f":
            return self.each("FNegate", a.dtype, a)
        return self._wrapped(self.each("SNegate", a.dtype, a, narrow=a.narrow))

    def invert(self, a):
        """All bits of an integer turned over."""
        return self._wrapped(self.each("Not", a.dtype, a, narrow=a.narrow))

    def compare(self, op, a, b):
        a, b = self.alike(a, b)
        if a.dtype.kind == "b":
            names = {"eq": "LogicalEqual", "ne": "LogicalNotEqual"}
            if op in names:
                return self.each(names[op], BOOL, a, b)
            a, b = self.cast(a, INT32), self.cast(b, INT32)
        return self.each(_COMPARE[op]["fiu".index(a.dtype.kind)], BOOL, a, b)

    def both(self, a, b):
        return self.each("LogicalAnd", BOOL, a, b)

    def either(self, a, b):
        return self.each("LogicalOr", BOOL, a, b)

    def no(self, a):
        return self.each("LogicalNot", BOOL, a)

    def select(self, condition, a, b):
        a, b = self.alike(a, b)
        if len(condition.lanes) == 1:
            condition = self.broadcast(condition, len(a.lanes))
        return self.each("Select", a.dtype, condition, a, b, narrow=a.narrow)

    def minimum(self, a, b):
        return self.select(self.compare("lt", a, b), a, b)

    def maximum(self, a, b):
        """As TVM has it elsewhere: where one is not a number, the second."""
        return self.select(self.compare("gt", a, b), a, b)

    def floor_div(self, a, b):
        if a.dtype.kind == "f":
            return self.glsl("Floor", self.div(a, b))
        a, b = self.alike(a, b)
        quotient = self.div(a, b)
        if a.dtype.kind == "u":
            return quotient
        zero = self.constant(a.dtype, 0, quotient.narrow)
        rest = self._less_multiple(a, quotient, b)
        one_less = self.sub(quotient, self.constant(a.dtype, 1, quotient.narrow))
        return self.select(self._rounds_up(rest, b, zero), one_less, quotient)

    def floor_mod(self, a, b):
        if a.dtype.kind == "f":
            return self.sub(a, self.mul(self.glsl("Floor", self.div(a, b)), b))
        a, b = self.alike(a, b)
        rest = self.rest(a, b)
        if a.dtype.kind == "u":
            return rest
        zero = self.constant(a.dtype, 0, rest.narrow)
        return self.select(self._rounds_up(rest, b, zero), self.add(rest, b), rest)

    def rest(self, a, b):
        """Of integers, what a division toward zero leaves, with the sign of `a`."""
        a, b = self.alike(a, b)
        if a.dtype.kind == "u":
            return self.each("UMod", a.dtype, a, b)
        # Vulkan leaves SRem undefined where an operand is negative.
        return self._less_multiple(a, self.div(a, b), b)

    def _less_multiple(self, a, quotient, b):
        """a - quotient · b, which is no greater than `a` or `b`."""
        product = self.each("IMul", a.dtype, quotient, b, narrow=a.narrow)
        return self.each("ISub", a.dtype, a, product, narrow=a.narrow)

    def _rounds_up(self, rest, divisor, zero):
        """Whether a division toward zero rounded up, so that the floor is one less."""
        signs = self.compare("lt", self.binary("xor", rest, divisor), zero)
        return self.both(self.compare("ne", rest, zero), signs)

    # Conversions.

    def cast(self, value, target):
        """The value as C would convert it; a float toward zero."""
        target = target.of_lanes(len(value.lanes))
        source = value.dtype
        if source == target:
            return value
        if target.kind == "b":
            return self.compare("ne", value, self.constant(source, 0, value.narrow))
        if source.kind == "b":
            narrow = target.kind == "i" and target.bits == 64
            one, zero = (self.constant(target, number, narrow) for number in (1, 0))
            return self.select(value, one, zero)
        if target.kind == "f":
            return self._to_float(value, target)
        if source.kind == "f":
            return self._float_to_int(value, target)
        return self._int_to_int(value, target)

    def _to_float(self, value, target):
        if value.dtype.kind == "f":
            return self.each("FConvert", target, value)
        op = "ConvertUToF" if value.dtype.kind == "u" else "ConvertSToF"
        return self.each(op, target, value)

    def _float_to_int(self, value, target):
        op = "ConvertFToU" if target.kind == "u" else "ConvertFToS"
        if target.bits >= 32:
            return self.each(op, target, value)
        # Through int32, so that a value out of range wraps as in C's usual compilers.
        wide = self.each("ConvertFToS", INT32, value)
        return self._wrapped(Value(target, wide.lanes))

    def _int_to_int(self, value, target):
        source = value.dtype
        if target.bits == 64:
            if value.narrow and target.kind == "i":
                return Value(target, value.lanes, True)
            if source.bits == 64:
                return Value(target, self.widen(value).lanes)
            # What has fewer than 32 bits, or a sign, is right in 32 bits.
            if target.kind == "i" and (source.kind == "i" or source.bits < 32):
                return Value(target, value.lanes, True)
            op = "SConvert" if source.kind == "i" else "UConvert"
            type_id = self.type(target)
            return Value(target, tuple(self.writer.value(op, type_id, x) for x in value.lanes))
        low = self.low(value) if source.bits == 64 else value
        result = Value(target, low.lanes)
        fits = source.bits < target.bits and (source.kind == "u" or target.kind == "i")
        return result if fits or target.bits >= 32 else self._wrapped(result)

    def bitcast(self, value, target):
        """The same bits as another type."""
        value = self.widen(value)
        source = value.dtype
        if source.bits != target.bits or len(value.lanes) != target.lanes:
            refuse(
                f"a reinterpretation of {source} as {target} changes the size of lanes",
                "reinterpret between types of the same size",
            )
        if source.is_int and target.is_int:
            return self._wrapped(Value(target, value.lanes))
        if source.kind == target.kind:
            return value
        if "b" in (source.kind, target.kind):
            return self.cast(value, target)
        if source.bits != 16:
            return self.each("Bitcast", target, value)
        return self._bitcast16(value, target)

    def _bitcast16(self, value, target):
        """By way of a pair in 32 bits: integers of 16 bits are held in 32."""
        half = self.type(FLOAT16)
        pair = self.writer.once("TypeVector", half, 2)
        lanes = []
        for lane in value.lanes:
            if target.kind == "f":
                both = self.writer.value("Bitcast", pair, lane)
                lanes.append(self.writer.value("CompositeExtract", half, both, 0))
            else:
                zero = self.constant(FLOAT16, 0).id
                both = self.writer.value("CompositeConstruct", pair, lane, zero)
                lanes.append(self.writer.value("Bitcast", self.type(UINT32), both))
        return self._wrapped(Value(target, tuple(lanes)))

    # Control flow.

    def label(self, target):
        self.writer.effect("Label", target)
        self.block = target
        self.open = True

    def branch(self, target):
        """Ends the block, unless it has ended."""
        if self.open:
            self.writer.effect("Branch", target)
            self.open = False

    def fork(self, condition, then, other, merge):
        self.writer.effect("SelectionMerge", merge, 0)
        self.writer.effect("BranchConditional", condition.id, then, other)
        self.open = False

    def choose(self, condition, then, other):
        """The value of `then()` or of `other()`, of which only one is evaluated."""
        then_label, other_label, merge = (self.writer.new_id() for _ in range(3))
        self.fork(condition, then_label, other_label, merge)
        ends = []
        for label, evaluate in ((then_label, then), (other_label, other)):
            self.label(label)
            value = evaluate()
            ends.append((value, self.block))
            self.branch(merge)
        self.label(merge)
        (a, from_a), (b, from_b) = ends
        if a.narrow != b.narrow:
            raise AssertionError("the branches hold the value in different ways")
        type_id = self.type(a.dtype, a.narrow)
        lanes = tuple(
            self.writer.value("Phi", type_id, x, from_a, y, from_b)
            for x, y in zip(a.lanes, b.lanes)
        )
        return Value(a.dtype, lanes, a.narrow)


def _lanes(value):
    return value.lanes


def _wrap(number, dtype):
    number &= (1 << dtype.bits) - 1
    negative = dtype.kind == "i" and number >> (dtype.bits - 1)
    return number - (1 << dtype.bits) if negative else number
