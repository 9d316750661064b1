"""Which integers an expression can be, to hold 64-bit indices in 32 bits where that is right."""

from . import ir
from .dtypes import DType

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


class Ranges:
    """Ranges of the variables in scope, and by them of expressions."""

    def __init__(self):
        self._variables = {}
        # With each range its node, as a node that is gone may leave its key to another.
        self._known = {}

    def bind(self, variable, low, high):
        at = ir.key(variable)
        if self._variables.get(at, (low, high)) != (low, high):
            # The copies of an unrolled loop share the variables within, and expressions of them.
            self._known.clear()
        self._variables[at] = (low, high)

    def fits_int32(self, node) -> bool:
        low, high = self.of(node)
        return INT32_MIN <= low and high <= INT32_MAX

    def quotient_fits_int32(self, node) -> bool:
        """Whether a quotient of integers in 32 bits is within them: all but the least over -1."""
        least, (low, high) = self.of(node.a)[0], self.of(node.b)
        return least > INT32_MIN or high < -1 or low > -1

    def ramp_fits_int32(self, node) -> bool:
        """Whether all lanes of a ramp are within 32 bits."""
        (low, high), (least, most) = self.of(node.base), self.of(node.stride)
        last = ir.dtype(node).lanes - 1
        lowest, highest = low + min(least * last, 0), high + max(most * last, 0)
        return INT32_MIN <= lowest and highest <= INT32_MAX

    def of(self, node):
        """The least and the greatest value; those of the type where nothing is known."""
        at = ir.key(node)
        if at not in self._known:
            self._known[at] = self._of(node), node
        return self._known[at][0]

    def _of(self, node):
        whole = _whole(ir.dtype(node))
        if ir.dtype(node).lanes > 1:
            return whole
        found = self._find(node)
        if found is None or found[0] < whole[0] or found[1] > whole[1]:
            return whole
        return found

    def _find(self, node):
        kind = ir.kind(node)
        if kind == "IntImm":
            return node.value, node.value
        if kind == "Var":
            return self._variables.get(ir.key(node))
        if kind == "Cast":
            return self.of(node.value) if ir.dtype(node.value).kind in "iub" else None
        if kind == "Select":
            return _union(self.of(node.true_value), self.of(node.false_value))
        if kind == "Let":
            self.bind(node.var, *self.of(node.value))
            return self.of(node.body)
        if kind in _BINARY:
            return _BINARY[kind](self.of(node.a), self.of(node.b))
        operator = ir.operator(node)
        if operator is None:
            return None
        name, operands = operator
        if name == "if_then_else":
            return _union(self.of(operands[1]), self.of(operands[2]))
        if name == "likely":
            return self.of(operands[0])
        if name in _CALLS:
            return _CALLS[name](*map(self.of, operands))
        return None


def _whole(dtype: DType):
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind == "i":
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def _union(a, b):
    return min(a[0], b[0]), max(a[1], b[1])


def _corners(op, a, b):
    results = [op(x, y) for x in a for y in b]
    return min(results), max(results)


def _truncated(x, y):
    return abs(x) // y if x >= 0 else -(abs(x) // y)


def _div(a, b):
    return _corners(_truncated, a, b) if b[0] > 0 else None


def _floor_div(a, b):
    return _corners(lambda x, y: x // y, a, b) if b[0] > 0 else None


def _mod(a, b):
    if b[0] <= 0:
        return None
    most = max(abs(b[0]), abs(b[1])) - 1
    low = 0 if a[0] >= 0 else max(-most, a[0])
    return low, min(most, max(a[1], 0))


def _floor_mod(a, b):
    if b[0] <= 0:
        return None
    return 0, (min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1)


def _and(a, b):
    known = [high for low, high in (a, b) if low >= 0]
    return (0, min(known)) if known else None


def _shift_right(a, b):
    return _corners(lambda x, y: x >> y, a, b) if 0 <= b[0] and b[1] < 64 else None


def _shift_left(a, b):
    return _corners(lambda x, y: x << y, a, b) if 0 <= b[0] and b[1] < 64 else None


_BINARY = {
    "Add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "Sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "Mul": lambda a, b: _corners(lambda x, y: x * y, a, b),
    "Div": _div,
    "Mod": _mod,
    "FloorDiv": _floor_div,
    "FloorMod": _floor_mod,
    "Min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "Max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}

_CALLS = {"bitwise_and": _and, "shift_right": _shift_right, "shift_left": _shift_left}
