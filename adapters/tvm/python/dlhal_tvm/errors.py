"""What a kernel cannot be compiled for, in one sentence."""


class CompileError(ValueError):
    """A kernel has something that this code generator cannot make right.

    The message names the kernel, the construct, and what to do.
    """


def refuse(what: str, remedy: str):
    """Stops the compilation; the kernel's name is put before it where it is known."""
    raise CompileError(f"{what}; {remedy}")
