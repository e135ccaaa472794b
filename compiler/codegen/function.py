"""A generated function: one loop nest in the target's language."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tcw.compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class PhaseLines:
    """One of the phases of a function: loops that run before or after those of the others. Lines
    are of the function's body, from 1."""

    call: int
    """Of the statement that runs it, on one thread or on all."""
    loop: int
    """Of its first outermost loop; of its head if it has none."""


@dataclass(frozen=True, slots=True)
class Function:
    """One nest's code.

    Nests that differ only in the names of their buffers and symbols share one body: the unit
    contains each distinct `body` once. In C++ its signature is

        static void NAME(void* const* pointers, const long* sizes, char* workspace, int* error)
    """

    body: str
    """The text, with `@` in place of its name; an `@` in a comment is the user's."""
    pointers: tuple[str, ...]
    """Buffers, in the order in which the body takes them."""
    sizes: tuple[str, ...]
    """Symbols, in the order in which the body takes them."""
    workspace_bytes: Size = 0
    """Scratch memory per call; it need not be zeroed."""
    lines: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """(line of the body, counted from 1; origins that the line computes)."""
    parts: tuple[PhaseLines, ...] = ()
    """The phases that are functions of their own, in the order in which they run."""
    loops: tuple[int, ...] = ()
    """Lines of the body, from 1, at which its outermost loops begin."""
    shown: str = ""
    """The kernels that it launches, in their language; "" if the body is what runs. Then `lines`
    are those of this text."""
    launches: tuple[str, ...] = ()
    """Names of these kernels, in order."""
    key: str = ""
    """The text without comments and with numbered names: equal for functions that do the same to
    pointers and sizes in the same order. "" if unknown."""

    def named(self, name: str) -> str:
        """The body with the given name."""
        return _NAME_OR_COMMENT.sub(lambda found: name if found[0] == "@" else found[0], self.body)


_NAME_OR_COMMENT = re.compile(r"//[^\n]*|@")
