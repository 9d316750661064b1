"""What differs in TVM's IR from release to release: names of nodes and where types stand.

Nodes are told apart by their classes' names, as the classes themselves move between modules.
"""

import functools

from . import dtypes

# Operators that are calls in some releases and nodes in others, by one name.
_OPERATORS = {
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "BitwiseNot": "bitwise_not",
    "LShift": "shift_left",
    "RShift": "shift_right",
    "LeftShift": "shift_left",
    "RightShift": "shift_right",
}


def kind(node) -> str:
    """The node's class, by one name over the releases."""
    name = type(node).__name__
    return "BufferLoad" if name == "TensorLoad" else name


def operator(node):
    """The name of what a call calls or an operator node does, with its operands; or None."""
    name = type(node).__name__
    if name == "Call":
        op = getattr(node.op, "name", None)
        if op is None:
            op = getattr(node.op, "name_hint", str(node.op))
        return str(op).rpartition(".")[2], list(node.args)
    if name in _OPERATORS:
        if hasattr(node, "b"):
            return _OPERATORS[name], [node.a, node.b]
        return _OPERATORS[name], [node.a if hasattr(node, "a") else node.value]
    return None


def key(node) -> int:
    """What tells one node from another for as long as the function lives."""
    return node.__chandle__()


def dtype_text(node) -> str:
    """The type of an expression or variable as TVM spells it."""
    dtype = getattr(node, "dtype", None)
    return str(dtype if dtype is not None else node.ty.dtype)


def dtype(node) -> dtypes.DType:
    return dtypes.parse(dtype_text(node))


@functools.cache
def round_is_called_as_c_does() -> bool:
    """Whether TVM's `round`, halves to even, arrives as C's of that name, halves away from zero.

    Releases before 0.27 make it so for targets without a rule of their own. What the author of a
    kernel calls by C's name cannot be told from it there.
    """
    import tvm

    release = tuple(int(part) for part in tvm.__version__.split(".")[:2])
    return release < (0, 27)


def pointer(var):
    """The element type's text and the scope that a pointer variable has; None for a number."""
    for attribute in ("ty", "type_annotation"):
        annotation = getattr(var, attribute, None)
        if annotation is not None and type(annotation).__name__ == "PointerType":
            element = annotation.element_type
            text = str(element.dtype) if hasattr(element, "dtype") else "void"
            return text, str(annotation.storage_scope) or "global"
    if str(getattr(var, "dtype", "")) == "handle":
        return "void", "global"
    return None


def buffer_of(node):
    """The buffer that a load or store goes to."""
    return node.source if type(node).__name__ == "TensorLoad" else node.buffer


def _buffer_type(buffer):
    """Where a buffer's shape and type stand: in the buffer, or in its variable's type."""
    ty = getattr(buffer, "ty", None)
    return ty if type(ty).__name__ == "BufferType" else buffer


def buffer_dtype(buffer) -> dtypes.DType:
    return dtypes.parse(str(_buffer_type(buffer).dtype))


def buffer_shape(buffer):
    return list(_buffer_type(buffer).shape)


def buffer_scope(buffer) -> str:
    ty = _buffer_type(buffer)
    return str(ty.storage_scope if ty is not buffer else buffer.scope()) or "global"


def buffer_key(buffer) -> int:
    """What names the buffer's memory: its data variable, or itself where it is a variable."""
    return key(buffer.data if type(buffer).__name__ == "Buffer" else buffer)


def declared_key(statement):
    """What names the memory that a DeclBuffer gives another name; None where it is computed."""
    data = getattr(statement, "data", None)
    if data is None:
        return buffer_key(statement.buffer)
    called = operator(data)
    if called is not None and called[0] == "buffer_data":
        data = called[1][0]
    return key(data) if kind(data) == "Var" else None
