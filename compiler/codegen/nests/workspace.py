"""Scratch memory that connects the phases or kernels of one nest."""

from __future__ import annotations

from math import gcd

from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.sizes import Size, add, multiply, terms


class Workspace:
    """Pseudo-buffers one after another, each at a multiple of `line` bytes."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.places: dict[str, tuple[str, Size]] = {}
        """Pseudo-buffer -> (dtype, byte offset)."""
        self.bytes: Size = 0

    def reserve(self, wanted: str, dtype: str, size: Size) -> str:
        """Allocate a pseudo-buffer of `size` elements and return its name."""
        name = f"{wanted}.{len(self.places)}"
        self.places[name] = (dtype, self.bytes)
        self.bytes = add(self.bytes, self._aligned(multiply(size, BYTES[dtype])))
        return name

    def _aligned(self, size: Size) -> Size:
        if isinstance(size, int):
            return -(-size // self.line) * self.line
        common = gcd(self.line, *(factor for _, factor in terms(size)))
        return multiply(size, self.line // common)
