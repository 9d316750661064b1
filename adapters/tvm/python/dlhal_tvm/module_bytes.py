"""TVM's bytes form of a Vulkan module, as its releases from 0.24 on read it."""

import struct

_HANDLE = (3, 64, 1)
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


def write(kernels) -> bytes:
    """`kernels` is a list of (name, shader, launch tags)."""
    out = [_string("vulkan"), _count(kernels)]
    for name, shader, tags in kernels:
        out += [_string(name), _string(name), _count(shader.arg_types)]
        out += [struct.pack("<BBH", *arg_type) for arg_type in shader.arg_types]
        out.append(_count(tags))
        out += [_string(tag) for tag in tags]
        # No argument has an extra tag.
        out.append(_count([]))
    out.append(_count(kernels))
    for name, shader, _ in kernels:
        words = len(shader.spirv) // 4
        code = struct.pack("<IQ", shader.flags, words) + shader.spirv
        out += [_string(name), _bytes(code)]
    return b"".join(out)


def argument_type(dtype):
    """An argument's type as DLPack has it; None is a buffer."""
    if dtype is None:
        return _HANDLE
    return _CODES[dtype.kind], 8 if dtype.kind == "b" else dtype.bits, dtype.lanes


def _count(items):
    return struct.pack("<Q", len(items))


def _bytes(data):
    return struct.pack("<Q", len(data)) + data


def _string(text):
    return _bytes(text.encode())
