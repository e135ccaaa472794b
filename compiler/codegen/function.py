"""A generated function: one loop nest in the target's language."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class Function:
    """One nest's code.

    Nests that differ only in the names of their buffers and symbols share one body: the unit holds
    each distinct `body` once. In C++ its signature is

        static void NAME(void* const* pointers, const long* sizes, char* workspace, int* error)
    """

    body: str
    """The text, with `@` where its name belongs; in a comment an `@` is the user's own."""
    pointers: tuple[str, ...]
    """Buffers, in the order in which the body takes them."""
    sizes: tuple[str, ...]
    """Symbols, in the order in which the body takes them."""
    workspace_bytes: Size = 0
    """Scratch memory that it wants for a call; it need not be zeroed."""
    lines: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """(line of the body, counted from 1; origins that the line computes)."""
    nests: tuple[str, ...] = ()
    """Names of the nests that it carries out."""
    key: str = ""
    """The text without comments and with numbers for names: equal for functions that do the same
    to pointers and sizes in the same order; "" where that is not known."""

    def named(self, name: str) -> str:
        """The body under a name."""
        return _NAME_OR_COMMENT.sub(lambda found: name if found[0] == "@" else found[0], self.body)


_NAME_OR_COMMENT = re.compile(r"//[^\n]*|@")
