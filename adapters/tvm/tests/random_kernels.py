"""Random kernels in TVM's script, of which every value is defined and exact.

An expression carries the interval of its values. Operators are only applied where no result leaves
its type, no divisor is zero and no shift is out of range, so that every target must agree. Floats
are multiples of a power of two with fewer bits than their mantissa has: sums, products and minima
of them are exact in whatever order, contracted or not, and are compared bit by bit.
"""

import re
from typing import NamedTuple

import numpy as np

THREADS, GROUPS = 16, 3
COUNT = THREADS * GROUPS

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32")
INTEGERS = SIGNED + UNSIGNED
# Bits of a float's mantissa, and the greatest integer that all sums may reach.
_MANTISSA = {"float16": 11, "float32": 24}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


# What is in every text but those of constants.
_VARIES = re.compile(r"\[|\b[ijtbnmu]\b|\bk\d+")


class Expr(NamedTuple):
    """The text, the type, the interval, and of floats how many binary places they have."""

    text: str
    dtype: str
    low: int
    high: int
    places: int = 0


class Kernel(NamedTuple):
    """Its text for a target with threads and for one without, and its inputs and outputs."""

    threaded: str
    serial: str
    arrays: list
    scalars: list
    outputs: list


def whole(dtype):
    if dtype == "bool":
        return 0, 1
    bounds = np.iinfo(dtype)
    return int(bounds.min), int(bounds.max)


class Generator:
    """Writes one kernel. Inputs hold, of each type, anything (`w`) or little (`s`)."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.inputs = {}
        self.outputs = []
        self.scope = []
        self.names = 0

    # Choices.

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share):
        return self.rng.random() < share

    def number(self, low, high):
        return int(self.rng.integers(low, high, dtype="int64", endpoint=True))

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    # Leaves.

    def constant(self, dtype, low, high):
        return self.literal(dtype, self.number(low, high))

    def literal(self, dtype, number):
        return Expr(f"T.{dtype}({number})", dtype, number, number)

    def load(self, dtype, small):
        key = f"{'s' if small else 'w'}_{dtype}"
        if dtype in FLOATS:
            low, high, places = -32, 32, 2
        elif dtype == "bool":
            low, high, places = 0, 1, 0
        elif small:
            low, high, places = (-100, 100, 0) if dtype in SIGNED else (0, 100, 0)
        else:
            low, high, places = *whole(dtype), 0
        self.inputs.setdefault(key, (dtype, low, high, places))
        return Expr(f"{key}[{self.index()}]", dtype, low, high, places)

    def index(self):
        """An index within the buffers: the element's own, or one computed of integers."""
        if self.chance(0.5):
            return self.pick(("i", "j"))
        if self.chance(0.5):
            term = f"{self.number(1, 5)} * b + {self.number(0, 9)} * t + {self.number(0, 99)}"
            return f"T.floormod({term}, {COUNT})"
        dtype = self.pick(("int32", "int64"))
        inner = self.integer(dtype, 1)
        return f"T.floormod({inner.text}, T.{dtype}({COUNT}))"

    def leaf(self, dtype):
        known = [x for x in self.scope if x.dtype == dtype]
        if known and self.chance(0.5):
            return self.pick(known)
        if dtype in FLOATS:
            if self.chance(0.7):
                return self.load(dtype, True)
            number = self.number(-16, 16)
            return Expr(f"T.{dtype}({number / 4})", dtype, -4, 4, 2)
        if self.chance(0.25):
            low, high = whole(dtype)
            if self.chance(0.5):
                low, high = max(low, -9), min(high, 9)
            return self.constant(dtype, low, min(high, (1 << 63) - 1))
        return self.load(dtype, self.chance(0.6))

    # Integers.

    def fits(self, text, dtype, *corners):
        """The expression, where all of its values are of the type; or None."""
        low, high = whole(dtype)
        if min(corners) < low or max(corners) > high:
            return None
        return Expr(text, dtype, min(corners), max(corners))

    def integer(self, dtype, depth):
        if depth <= 0:
            return self.leaf(dtype)
        for _ in range(4):
            made = self.pick(self.INTEGER_FORMS)(self, dtype, depth - 1)
            if made is not None:
                return made
        return self.leaf(dtype)

    def arithmetic(self, dtype, depth):
        a, b = self.integer(dtype, depth), self.integer(dtype, depth)
        op = self.pick("+-*")
        if op == "*":
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        elif op == "+":
            corners = [a.low + b.low, a.high + b.high]
        else:
            corners = [a.low - b.high, a.high - b.low]
        return self.fits(f"({a.text} {op} {b.text})", dtype, *corners)

    def divisor(self, dtype, depth):
        """Never zero, and where signs are, of either."""
        low, high = whole(dtype)
        if self.chance(0.4):
            number = self.number(1, min(high, 1 << int(self.rng.integers(1, 40))))
            negative = low < 0 and self.chance(0.4)
            return self.literal(dtype, -number if negative else number)
        x = self.integer(dtype, depth)
        positive = f"(T.bitwise_and({x.text}, T.{dtype}(7)) + T.{dtype}(1))"
        if low < 0 and self.chance(0.5):
            return Expr(f"(T.{dtype}(0) - {positive})", dtype, -8, -1)
        return Expr(positive, dtype, 1, 8)

    def division(self, dtype, depth):
        a, b = self.integer(dtype, depth), self.divisor(dtype, depth)
        if b.low < 0 and a.low == whole(dtype)[0]:
            # The least over -1 has no quotient.
            return None
        op = self.pick(("floordiv", "floormod", "truncdiv", "truncmod"))
        text = f"T.{op}({a.text}, {b.text})"
        most = max(abs(b.low), abs(b.high)) - 1
        if op == "floormod":
            return Expr(text, dtype, min(b.low + 1, 0), max(b.high - 1, 0))
        if op == "truncmod":
            return Expr(text, dtype, -most if a.low < 0 else 0, most if a.high > 0 else 0)
        corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
        return self.fits(text, dtype, min(corners), max(corners) + 1)

    def shift(self, dtype, depth):
        a = self.integer(dtype, depth)
        bits = np.iinfo(dtype).bits
        left = self.chance(0.4)
        most = bits - 1
        if left:
            most = min(bits - 2, int(self.rng.integers(1, bits - 1)))
            mask = (1 << most.bit_length()) // 2 - 1
        else:
            # TVM narrows int64 of few values to int32, and leaves a count beyond that as it is.
            few = -(1 << 31) <= a.low and a.high < 1 << 31
            mask = min(most, 31) if few else most
        if self.chance(0.4):
            count = self.constant(dtype, 0, mask)
        else:
            x = self.integer(dtype, depth)
            count = Expr(f"T.bitwise_and({x.text}, T.{dtype}({mask}))", dtype, 0, mask)
        if left:
            corners = [x << y for x in (a.low, a.high) for y in (count.low, count.high)]
            return self.fits(f"T.shift_left({a.text}, {count.text})", dtype, *corners)
        corners = [x >> y for x in (a.low, a.high) for y in (count.low, count.high)]
        return self.fits(f"T.shift_right({a.text}, {count.text})", dtype, *corners)

    def bits(self, dtype, depth):
        a = self.integer(dtype, depth)
        if self.chance(0.2):
            return Expr(f"T.bitwise_not({a.text})", dtype, *whole(dtype))
        b = self.integer(dtype, depth)
        op = self.pick(("and", "or", "xor"))
        text = f"T.bitwise_{op}({a.text}, {b.text})"
        if op == "and" and b.low >= 0:
            return Expr(text, dtype, 0, b.high)
        return Expr(text, dtype, *whole(dtype))

    def extremum(self, dtype, depth):
        a, b = self.integer(dtype, depth), self.integer(dtype, depth)
        op = self.pick((min, max))
        interval = op(a.low, b.low), op(a.high, b.high)
        return Expr(f"T.{op.__name__}({a.text}, {b.text})", dtype, *interval)

    def choice(self, dtype, depth):
        a, b = self.value(dtype, depth), self.value(dtype, depth)
        form = self.pick(("Select", "if_then_else"))
        text = f"T.{form}({self.truth(depth).text}, {a.text}, {b.text})"
        return Expr(text, dtype, min(a.low, b.low), max(a.high, b.high), max(a.places, b.places))

    def conversion(self, dtype, depth):
        """Of another integer that fits, as TVM takes casts to fit when it simplifies; of a truth
        value; or of a float, toward zero."""
        source = self.pick((*INTEGERS, "bool", *FLOATS))
        a = self.value(source, depth)
        low, high = whole(dtype)
        if a.low < low or a.high > high:
            return None
        return Expr(f'T.Cast("{dtype}", {a.text})', dtype, a.low, a.high)

    def clamped(self, dtype, depth):
        """Little, whatever the operand is, so that arithmetic goes on."""
        a = self.integer(dtype, depth)
        low, high = (-50, 50) if whole(dtype)[0] < 0 else (0, 50)
        text = f"T.max(T.min({a.text}, T.{dtype}({high})), T.{dtype}({low}))"
        return Expr(text, dtype, low, high)

    def magnitude(self, dtype, depth):
        a = self.integer(dtype, depth)
        if dtype not in SIGNED or a.low == whole(dtype)[0]:
            return None
        return Expr(f"T.abs({a.text})", dtype, 0, max(abs(a.low), abs(a.high)))

    INTEGER_FORMS = (arithmetic, arithmetic, arithmetic, division, division, shift, bits, extremum,
                     choice, conversion, conversion, clamped, magnitude)  # fmt: skip

    # Truth values.

    def truth(self, depth):
        if depth <= 0 or self.chance(0.1):
            return self.load("bool", True)
        if self.chance(0.3):
            # LLVM has no comparison of truth values.
            form = self.pick(("And", "Or", "Not"))
            a, b = self.truth(depth - 1), self.truth(depth - 1)
            if form == "Not":
                return Expr(f"T.Not({a.text})", "bool", 0, 1)
            return Expr(f"T.{form}({a.text}, {b.text})", "bool", 0, 1)
        if self.chance(0.1):
            x = self.integer(self.pick(INTEGERS), depth - 1)
            if _VARIES.search(x.text):
                return Expr(f'T.Cast("bool", {x.text})', "bool", 0, 1)
        dtype = self.pick((*INTEGERS, *FLOATS))
        a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        return Expr(f"({a.text} {self.pick(_COMPARISONS)} {b.text})", "bool", 0, 1)

    # Floats.

    def exact(self, text, dtype, low, high, places):
        """The expression, where its values are representable however they come about."""
        if max(abs(low), abs(high)) << places >= 1 << _MANTISSA[dtype]:
            return None
        return Expr(text, dtype, low, high, places)

    def real(self, dtype, depth):
        if depth <= 0:
            return self.leaf(dtype)
        for _ in range(4):
            made = self.real_form(dtype, depth - 1)
            if made is not None:
                return made
        return self.leaf(dtype)

    def real_form(self, dtype, depth):
        form = self.pick("+-*mmcifan")
        if form == "c":
            return self.choice(dtype, depth)
        if form == "i":
            x = self.integer(self.pick(INTEGERS), depth)
            return self.exact(f'T.Cast("{dtype}", {x.text})', dtype, x.low, x.high, 0)
        a = self.real(dtype, depth)
        if form == "f":
            source = self.real(self.pick(FLOATS), depth)
            text = f'T.Cast("{dtype}", {source.text})'
            return self.exact(text, dtype, source.low, source.high, source.places)
        if form == "a":
            return Expr(f"T.abs({a.text})", dtype, 0, max(abs(a.low), abs(a.high)), a.places)
        if form == "n":
            name = self.pick(("floor", "ceil", "trunc"))
            return Expr(f"T.{name}({a.text})", dtype, a.low, a.high, a.places)
        b = self.real(dtype, depth)
        places = max(a.places, b.places)
        if form == "m":
            op = self.pick((min, max))
            interval = op(a.low, b.low), op(a.high, b.high)
            return Expr(f"T.{op.__name__}({a.text}, {b.text})", dtype, *interval, places)
        if form == "*":
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            places = a.places + b.places
        elif form == "+":
            corners = [a.low + b.low, a.high + b.high]
        else:
            corners = [a.low - b.high, a.high - b.low]
        text = f"({a.text} {form} {b.text})"
        return self.exact(text, dtype, min(corners), max(corners), places)

    def value(self, dtype, depth):
        if dtype == "bool":
            return self.truth(depth)
        return self.real(dtype, depth) if dtype in FLOATS else self.integer(dtype, depth)

    # Statements: lines of text, and in `scope` what they may read.

    def output(self, dtype, per_element=1):
        name = f"o{len(self.outputs)}"
        self.outputs.append((name, dtype, COUNT * per_element))
        return name

    def any_type(self):
        return self.pick((*INTEGERS, *INTEGERS, *FLOATS, "bool"))

    def plain(self, depth):
        dtype = self.any_type()
        if dtype in INTEGERS and self.chance(0.3):
            # One that wraps, with nothing around it that TVM could simplify.
            source = self.load(self.pick(INTEGERS), False)
            return [f'{self.output(dtype)}[i] = T.Cast("{dtype}", {source.text})']
        return [f"{self.output(dtype)}[i] = {self.value(dtype, depth).text}"]

    def branching(self, depth):
        """Stores under conditions, with and without another branch."""
        dtype = self.any_type()
        out = self.output(dtype)
        lines = [f"if {self.truth(depth).text}:", f"    {out}[i] = {self.value(dtype, depth).text}"]
        if self.chance(0.6):
            lines.append("else:")
            if self.chance(0.5):
                lines += [f"    if {self.truth(1).text}:",
                          f"        {out}[i] = {self.value(dtype, 1).text}"]  # fmt: skip
            else:
                lines.append(f"    {out}[i] = {self.value(dtype, depth).text}")
        return lines

    def within(self, names, make):
        """What `make` gives while `names` can be read."""
        self.scope += names
        made = make()
        del self.scope[len(self.scope) - len(names) :]
        return made

    def loop_variable(self):
        """A loop, perhaps from below zero, perhaps of no turns."""
        name, dtype = self.name("k"), self.pick(("int32", "int64"))
        start, extent = self.number(-3, 4), self.number(0, 5)
        if self.chance(0.4):
            # Of as many turns as an input says; none where that is negative.
            bound = f'T.Cast("{dtype}", T.min({self.load("int32", True).text}, T.int32(4)))'
            return f"for {name} in range(T.{dtype}(0), {bound}):", Expr(name, dtype, 0, 4)
        head = f"for {name} in range(T.{dtype}({start}), T.{dtype}({start + extent})):"
        return head, Expr(name, dtype, start, max(start, start + extent))

    def bounded(self, expr):
        """The expression held within little, to be kept from turn to turn."""
        dtype = expr.dtype
        if dtype == "bool":
            return expr.text
        low = "0" if dtype in UNSIGNED else "-60"
        return f"T.max(T.min({expr.text}, T.{dtype}(60)), T.{dtype}({low}))"

    def accumulating(self, depth):
        """Nested loops that carry a value, with a way out."""
        dtype = self.any_type()
        acc, out = self.name("acc"), self.output(dtype)
        low, high = (0, 1) if dtype == "bool" else (0 if dtype in UNSIGNED else -60, 60)
        kept = Expr(f"{acc}[0]", dtype, low, high, 4 if dtype in FLOATS else 0)
        lines = [f'{acc} = T.alloc_buffer((1,), "{dtype}", scope="local")']
        first = "False" if dtype == "bool" else f"T.{dtype}(1)"
        lines.append(f"{acc}[0] = {first}")
        outer, k = self.loop_variable()
        inner, m = self.loop_variable()
        update = self.within([kept, kept, k, m], lambda: self.value(dtype, depth))
        if dtype in FLOATS and update.places > 4:
            update = kept
        lines += [outer, f"    {inner}"]
        if self.chance(0.4):
            way = self.pick(("break", "continue"))
            leave = self.within([kept, k, m], lambda: self.truth(1))
            lines += [f"        if {leave.text}:", f"            {way}"]
        lines.append(f"        {acc}[0] = {self.bounded(update)}")
        if self.chance(0.4):
            leave = self.within([kept, k], lambda: self.truth(1))
            lines += [f"    if {leave.text}:", f"        {self.pick(('break', 'continue'))}",
                      f"    {acc}[0] = {self.bounded(kept)}"]  # fmt: skip
        return [*lines, f"{out}[i] = {acc}[0]"]

    def counting_down(self, depth):
        dtype = self.pick(INTEGERS)
        count, out = self.name("c"), self.output(dtype)
        left = Expr(f"{count}[0]", dtype, 0, 60)
        total = Expr(f"{count}[1]", dtype, 0 if dtype in UNSIGNED else -60, 60)
        x = self.integer(dtype, 1)
        update = self.within([left, total, total], lambda: self.integer(dtype, depth))
        return [
            f'{count} = T.alloc_buffer((2,), "{dtype}", scope="local")',
            f"{count}[0] = T.bitwise_and({x.text}, T.{dtype}(7))",
            f"{count}[1] = T.{dtype}(3)",
            f"while {count}[0] > T.{dtype}(0):",
            f"    {count}[1] = {self.bounded(update)}",
            f"    {count}[0] = T.shift_right({count}[0] - T.{dtype}(1), T.{dtype}(0))",
            f"{out}[i] = {count}[1]",
        ]

    def table(self, depth):
        """An array of one thread, of two dimensions, filled and then read in another order."""
        dtype = self.any_type()
        array, out = self.name("l"), self.output(dtype)
        k, m = self.name("k"), self.name("m")
        at = [Expr(k, "int32", 0, 2), Expr(m, "int64", 0, 3)]
        fill = self.within(at, lambda: self.value(dtype, depth))
        row, column = self.integer("int32", 1), self.integer("int64", 1)
        read = f"T.floormod({row.text}, T.int32(3)), T.floormod({column.text}, T.int64(4))"
        return [
            f'{array} = T.alloc_buffer((3, 4), "{dtype}", scope="local")',
            f"for {k} in range(T.int32(3)):",
            f"    for {m} in range(T.int64(4)):",
            f"        {array}[{k}, {m}] = {fill.text}",
            f"{out}[i] = {array}[{read}]",
        ]

    def lanes(self, depth):
        """A loop over the lanes of a vector."""
        dtype, count, v = self.any_type(), self.pick((2, 4)), self.name("v")
        out = self.output(dtype, count)
        index_type = self.pick(("int32", "int64"))
        lane = Expr(f'T.Cast("{index_type}", {v})', index_type, 0, count - 1)
        wide = self.load(self.pick(INTEGERS), self.chance(0.5))
        source = f"{wide.text.partition('[')[0]}[T.floormod(i * {count} + {v}, {COUNT})]"
        value = self.within(
            [lane, lane, wide._replace(text=source)], lambda: self.value(dtype, depth)
        )
        return [f"for {v} in T.vectorized({count}):",
                f"    {out}[i * {count} + {v}] = {value.text}"]  # fmt: skip

    STATEMENTS = (plain, plain, branching, accumulating, counting_down, table, lanes)

    # The kernel.

    def exchange(self, depth):
        """Through workgroup memory: what each thread writes, and how another is read."""
        dtype = self.any_type()
        first = self.value(dtype, depth)
        turn = self.number(0, THREADS - 1)
        got = Expr(f"sh[T.floormod(t + {turn}, {THREADS})]", dtype, first.low, first.high,
                   first.places)  # fmt: skip
        result = self.any_type()
        out = self.output(result)
        second = self.within([got, got], lambda: self.value(result, depth))
        return dtype, [f"sh[t] = {first.text}"], [f"{out}[i] = {second.text}"]

    def kernel(self):
        depth = self.number(1, 3)
        scalars = [("n", "int32", self.number(-20, 20)), ("m", "int64", self.number(-20, 20)),
                   ("u", self.pick(INTEGERS), self.number(0, 20))]  # fmt: skip
        self.scope = [Expr(name, dtype, -20 if dtype in SIGNED else 0, 20)
                      for name, dtype, _ in scalars]  # fmt: skip
        self.scope += [
            Expr("i", "int32", 0, COUNT - 1), Expr("j", "int64", 0, COUNT - 1),
            Expr("t", "int32", 0, THREADS - 1),
            Expr('T.Cast("int64", t)', "int64", 0, THREADS - 1),
            Expr("b", "int32", 0, GROUPS - 1),
        ]  # fmt: skip
        body = []
        for _ in range(self.number(1, 3)):
            body += self.pick(self.STATEMENTS)(self, depth)
        stages, shared = [body], None
        if self.chance(0.3):
            shared, before, after = self.exchange(depth - 1)
            stages = [[*body, *before], after]
        arrays = [
            (name, dtype, self.data(dtype, low, high, places))
            for name, (dtype, low, high, places) in self.inputs.items()
        ]
        arguments = [f'{name}: T.Buffer(({COUNT},), "{dtype}")' for name, dtype, _ in arrays]
        arguments += [f"{name}: T.{dtype}" for name, dtype, _ in scalars]
        arguments += [f'{name}: T.Buffer(({n},), "{dtype}")' for name, dtype, n in self.outputs]
        texts = [_text(arguments, stages, shared, threaded) for threaded in (True, False)]
        return Kernel(*texts, arrays, scalars, self.outputs)

    def data(self, dtype, low, high, places):
        if dtype in FLOATS:
            numbers = self.rng.integers(low << places, high << places, COUNT, endpoint=True)
            return (numbers / (1 << places)).astype(dtype)
        if dtype == "bool":
            return self.rng.integers(0, 2, COUNT).astype("bool")
        if max(-low, high) >= 1 << 30:
            # TVM moves constants over comparisons, as if no sum left the type.
            low, high = low // 2, high // 2
        numbers = self.rng.integers(low, high, COUNT, dtype, endpoint=True)
        numbers[:4] = low, high, max(low, -1), 0
        return self.rng.permutation(numbers)


def _text(arguments, stages, shared, threaded):
    def loop(name, extent, tag):
        bound = f'T.thread_binding({extent}, thread="{tag}")' if threaded else f"range({extent})"
        return f"for {name} in {bound}:"

    lines = ["@T.prim_func(s_tir=True)", f"def main({', '.join(arguments)}):"]
    lines.append("    " + loop("b", GROUPS, "blockIdx.x"))
    if shared is not None:
        scope = "shared" if threaded else "global"
        lines.append(f'        sh = T.alloc_buffer(({THREADS},), "{shared}", scope="{scope}")')
    for stage in stages:
        lines.append("        " + loop("t", THREADS, "threadIdx.x"))
        lines.append(f"            i: T.let = b * {THREADS} + t")
        lines.append(
            f'            j: T.let = T.Cast("int64", b) * T.int64({THREADS}) + T.Cast("int64", t)'
        )
        lines += ["            " + line for line in stage]
    return "\n".join(lines) + "\n"
