"""Expressions of TVM's IR as values of a kernel."""

from tvm_ffi import structural_equal

from . import ir
from .builder import Value
from .dtypes import BOOL
from .errors import refuse
from .functions import Functions

_ARITHMETIC = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
_COMPARE = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_BITS = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "shift_left": "shl",
         "shift_right": "shr"}  # fmt: skip
_SHIFTS = ("shift_left", "shift_right")
# Their low 32 bits depend on nothing but the low 32 bits of their operands.
_MODULAR = ("Add", "Sub", "Mul")


class Expressions:
    """Evaluates expressions; knows the variables in scope."""

    def __init__(self, builder, ranges, memory):
        self.b = builder
        self.ranges = ranges
        self.memory = memory
        self.functions = Functions(builder)
        self.variables = {}
        self._loads = {}

    def bind(self, variable, value):
        self.variables[ir.key(variable)] = value

    def value(self, node) -> Value:
        """The value of `node`. A 64-bit integer that fits is in 32 bits, always."""
        value = self.evaluate(node)
        if value.dtype.bits == 64 and not value.narrow and self.fits(node, value.dtype):
            return self.b.low(value)
        return value

    def fits(self, node, dtype):
        return dtype == (dtype._replace(kind="i", bits=64, lanes=1)) and self.ranges.fits_int32(
            node
        )

    def index(self, access) -> Value:
        """The index of a load or store, in 32 bits where those are enough."""
        if len(access.indices) != 1:
            refuse(
                f"`{ir.buffer_of(access).name}` has {len(access.indices)} indices",
                "flatten buffers before the code is generated",
            )
        node = access.indices[0]
        dtype = ir.buffer_dtype(ir.buffer_of(access))
        # A buffer has fewer than 4 GiB: elements of two bytes and more need no more bits.
        if ir.dtype(node).bits == 64 and dtype.memory_bytes * dtype.lanes >= 2:
            return self.low(node)
        return self.value(node)

    def low(self, node) -> Value:
        """The low 32 bits of an integer of 64."""
        dtype = ir.dtype(node)
        if dtype.kind == "i" and dtype.bits == 64:
            kind = ir.kind(node)
            if kind in _MODULAR:
                return self.b.binary(_ARITHMETIC[kind], self.low(node.a), self.low(node.b))
            if kind == "IntImm":
                return self.b.constant(dtype, node.value, narrow=True)
            if kind == "Ramp":
                return self.ramp(self.low(node.base), self.low(node.stride), dtype.lanes)
            if kind == "Broadcast":
                return self.b.broadcast(self.low(node.value), dtype.lanes)
        return self.b.low(self.value(node))

    def evaluate(self, node):
        kind = ir.kind(node)
        handler = _HANDLERS.get(kind)
        if handler is not None:
            return handler(self, node)
        if kind in _ARITHMETIC:
            return self.arithmetic(node, _ARITHMETIC[kind])
        if kind in _COMPARE:
            return self.b.compare(_COMPARE[kind], self.value(node.a), self.value(node.b))
        operator = ir.operator(node)
        if operator is not None:
            return self.call(node, *operator)
        refuse(
            f"an expression of kind {kind} has no counterpart in Vulkan",
            "lower it before the code is generated",
        )

    def on_Var(self, node):
        value = self.variables.get(ir.key(node))
        if value is None:
            refuse(
                f"the variable `{node.name}` has no value in the kernel",
                "pass it as an argument",
            )
        return value

    def on_IntImm(self, node):
        return self.b.constant(ir.dtype(node), node.value, self.fits(node, ir.dtype(node)))

    def on_FloatImm(self, node):
        return self.b.constant(ir.dtype(node), node.value)

    def arithmetic(self, node, op):
        dtype = ir.dtype(node)
        if op != "div" and self.fits(node, dtype):
            return self.b.binary(op, self.low(node.a), self.low(node.b))
        a, b = self.value(node.a), self.value(node.b)
        if not self.fits(node, dtype):
            # The result may need all bits, however few the operands have.
            a, b = self.b.widen(a), self.b.widen(b)
        return self.b.binary(op, a, b)

    def on_Mod(self, node):
        if ir.dtype(node).kind == "f":
            return self.function("fmod", "truncmod", [node.a, node.b])
        return self.b.rest(*self.divided(node))

    def divided(self, node):
        """The operands of a division, in 32 bits where the quotient has no more."""
        a, b = self.value(node.a), self.value(node.b)
        if a.narrow and b.narrow and not self.ranges.quotient_fits_int32(node):
            return self.b.widen(a), self.b.widen(b)
        return a, b

    def on_FloorDiv(self, node):
        return self.b.floor_div(*self.divided(node))

    def on_FloorMod(self, node):
        return self.b.floor_mod(*self.divided(node))

    def on_Min(self, node):
        return self.b.minimum(self.value(node.a), self.value(node.b))

    def on_Max(self, node):
        return self.b.maximum(self.value(node.a), self.value(node.b))

    def on_And(self, node):
        return self.logical(node, is_and=True)

    def on_Or(self, node):
        return self.logical(node, is_and=False)

    def logical(self, node, is_and):
        """The second operand only where the first leaves it open, if it reads memory."""
        a = self.value(node.a)
        if len(a.lanes) > 1 or not self.loads(node.b):
            b = self.value(node.b)
            return self.b.both(a, b) if is_and else self.b.either(a, b)
        decided = self.b.constant(BOOL, not is_and)
        if is_and:
            return self.b.choose(a, lambda: self.value(node.b), lambda: decided)
        return self.b.choose(a, lambda: decided, lambda: self.value(node.b))

    def loads(self, node):
        """Whether the expression reads memory."""
        at = ir.key(node)
        if at not in self._loads:
            kind = ir.kind(node)
            self._loads[at] = kind == "BufferLoad" or any(map(self.loads, _operands(node)))
        return self._loads[at]

    def reads_elsewhere(self, node, place, index):
        """Whether the expression reads the memory `place` at another index than `index`."""
        if ir.kind(node) == "BufferLoad":
            here = ir.buffer_key(ir.buffer_of(node)) == place
            if here and not structural_equal(node.indices[0], index):
                return True
            return any(self.reads_elsewhere(x, place, index) for x in node.indices)
        return any(self.reads_elsewhere(x, place, index) for x in _operands(node))

    def on_Not(self, node):
        return self.b.no(self.value(node.a))

    def on_Select(self, node):
        condition = self.value(node.condition)
        return self.b.select(condition, self.value(node.true_value), self.value(node.false_value))

    def on_Cast(self, node):
        dtype = ir.dtype(node)
        source = ir.dtype(node.value)
        if source.kind == "i" and source.bits == 64 and dtype.is_int and dtype.bits <= 32:
            return self.b.cast(self.low(node.value), dtype)
        return self.b.cast(self.value(node.value), dtype)

    def on_Let(self, node):
        self.ranges.bind(node.var, *self.ranges.of(node.value))
        self.bind(node.var, self.value(node.value))
        return self.value(node.body)

    def on_BufferLoad(self, node):
        if getattr(node, "predicate", None) is not None:
            refuse(
                f"Predicated buffer load is not supported: that from `{ir.buffer_of(node).name}` has a mask",
                "schedule the loop without a predicate",
            )
        return self.memory.load(ir.buffer_of(node), self.index(node))

    def on_Ramp(self, node):
        base, stride = self.value(node.base), self.value(node.stride)
        if not self.ranges.ramp_fits_int32(node):
            base, stride = self.b.widen(base), self.b.widen(stride)
        return self.ramp(base, stride, ir.dtype(node).lanes)

    def ramp(self, base, stride, lanes):
        base, stride = self.b.alike(base, stride)
        values = [base]
        for lane in range(1, lanes):
            step = self.b.mul(stride, self.b.constant(stride.dtype, lane, stride.narrow))
            values.append(self.b.add(base, step))
        return self.b.join(values)

    def on_Broadcast(self, node):
        return self.b.broadcast(self.value(node.value), ir.dtype(node).lanes)

    def on_Shuffle(self, node):
        whole = self.b.join([self.value(vector) for vector in node.vectors])
        picked = []
        for index in node.indices:
            if ir.kind(index) != "IntImm":
                refuse("a lane is picked by an index that is not constant", "use a local array")
            picked.append(self.b.lane(whole, index.value))
        return self.b.join(picked)

    # Calls.

    def call(self, node, name, operands):
        if name in ("call_pure_extern", "call_extern", "call_intrin", "call_pure_intrin"):
            name, operands = str(operands[0].value), operands[1:]
            return self.function(_known_as(name), name, operands)
        special = _CALLS.get(name)
        if special is not None:
            return special(self, node, operands)
        if name in _BITS:
            a, b = self.value(operands[0]), self.value(operands[1])
            if name in _SHIFTS and not self.shifts_in_32_bits(name, node, operands[1]):
                a, b = self.b.widen(a), self.b.widen(b)
            return self.shifted(_BITS[name], a, b)
        return self.function(name, name, operands)

    def shifts_in_32_bits(self, name, node, count):
        """Whether a shift of 64 bits that are held in 32 can be done in those."""
        fits = name == "shift_right" or self.fits(node, ir.dtype(node))
        return fits and self.ranges.of(count)[1] < 32

    def shifted(self, op, a, b):
        """Shifts take a count of another type."""
        if op in ("shl", "shr") and b.dtype.scalar != a.dtype.scalar:
            b = self.b.cast(b, a.dtype)
        return self.b.binary(op, a, b)

    def function(self, name, spelled, operands):
        unknown = [operand for operand in operands if ir.pointer(operand) is not None]
        values = [self.b.widen(self.value(o)) for o in operands] if not unknown else []
        result = self.functions.call(name, values) if values else None
        if result is None:
            types = "pointers" if unknown else ", ".join(str(value.dtype) for value in values)
            refuse(
                f"the intrinsic `{spelled}` of {types or 'nothing'} is not to be had on Vulkan "
                "devices",
                _remedy(spelled),
            )
        return result

    def if_then_else(self, node, operands):
        condition = self.value(operands[0])
        dtype = ir.dtype(node)

        def branch(operand):
            value = self.value(operand)
            return value if self.fits(node, dtype) else self.b.widen(value)

        if len(condition.lanes) > 1:
            return self.b.select(condition, branch(operands[1]), branch(operands[2]))
        return self.b.choose(condition, lambda: branch(operands[1]), lambda: branch(operands[2]))

    def reinterpret(self, node, operands):
        return self.b.bitcast(self.value(operands[0]), ir.dtype(node))

    def same(self, node, operands):
        return self.value(operands[0])

    def bitwise_not(self, node, operands):
        value = self.value(operands[0])
        return self.b.no(value) if value.dtype.kind == "b" else self.b.invert(value)

    def large_uint(self, node, operands):
        low, high = (operand.value for operand in operands)
        return self.b.constant(ir.dtype(node), low | high << 32)


def _remedy(name):
    if name.startswith("tvm_warp_"):
        return "use a target with thread_warp_size=1"
    if "atomic" in name.lower():
        return "let one thread write each element, or run the operator on another target"
    return "express it by functions that are, or run the operator on another target"


def _operands(node):
    operator = ir.operator(node)
    if operator is not None:
        return [x for x in operator[1] if ir.kind(x) != "StringImm"]
    names = ("a", "b", "value", "condition", "true_value", "false_value", "body", "base", "stride")
    found = [getattr(node, name) for name in names if hasattr(node, name)]
    return [x for x in found if hasattr(x, "__chandle__")]


def _known_as(name):
    """What a function of C is called here: its name less the letter that says float."""
    stem = name[:-1] if name.endswith("f") and name not in ("erf", "isinf") else name
    return "round_away" if stem == "round" and not ir.round_is_called_as_c_does() else stem


_E = Expressions
_HANDLERS = {name[3:]: getattr(_E, name) for name in dir(_E) if name.startswith("on_")}
_CALLS = {
    "if_then_else": _E.if_then_else,
    "reinterpret": _E.reinterpret,
    "likely": _E.same,
    "tvm_thread_invariant": _E.same,
    "bitwise_not": _E.bitwise_not,
    "large_uint_imm": _E.large_uint,
}
