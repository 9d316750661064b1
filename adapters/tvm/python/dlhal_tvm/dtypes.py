"""Element types: TVM's, and how a kernel holds their values."""

from typing import NamedTuple

from .errors import refuse


class DType(NamedTuple):
    """A kind (`i`, `u`, `f` or `b` for truth values), the bits of one lane, and the lanes."""

    kind: str
    bits: int
    lanes: int = 1

    @property
    def scalar(self):
        return DType(self.kind, self.bits)

    def of_lanes(self, lanes):
        return DType(self.kind, self.bits, lanes)

    @property
    def is_int(self):
        return self.kind in "iu"

    @property
    def register_bits(self):
        """Bits a value has in the kernel: integers of fewer than 32 are held, extended, in 32."""
        return max(self.bits, 32) if self.is_int else self.bits

    @property
    def memory_bytes(self):
        """Bytes of one lane in a buffer. A truth value is a byte, 0 or 1."""
        return 1 if self.kind == "b" else self.bits // 8

    def __str__(self):
        name = {"i": "int", "u": "uint", "f": "float"}.get(self.kind)
        text = f"{name}{self.bits}" if name else "bool"
        return text if self.lanes == 1 else f"{text}x{self.lanes}"


BOOL = DType("b", 1)
INT32 = DType("i", 32)
UINT32 = DType("u", 32)
INT64 = DType("i", 64)
UINT64 = DType("u", 64)
FLOAT16 = DType("f", 16)
FLOAT32 = DType("f", 32)

_KINDS = {"int": "i", "uint": "u", "float": "f", "bool": "b"}
_WIDTHS = {"i": (8, 16, 32, 64), "u": (8, 16, 32, 64), "f": (16, 32, 64)}
_parsed = {}


def parse(text: str) -> DType:
    """The type that TVM spells `text`, such as `float16x4`."""
    if text not in _parsed:
        _parsed[text] = _parse(text)
    return _parsed[text]


def _parse(text):
    name, _, lanes = text.partition("x")
    stem = name.rstrip("0123456789")
    lanes = int(lanes) if lanes.isdigit() else 1
    kind = _KINDS.get(stem)
    if kind == "b" or name == "uint1":
        return BOOL.of_lanes(lanes)
    bits = int(name[len(stem) :] or 0)
    if kind is None or bits not in _WIDTHS[kind]:
        refuse(
            f"values of type {text} have no counterpart in Vulkan",
            "cast them to float32, float16 or an integer of 8 to 64 bits",
        )
    return DType(kind, bits, lanes)
