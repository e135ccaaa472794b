"""Scratch memory of one thread: row buffers and rows of accumulators."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.codegen.cpp.nests.code import Code
from tcw.compiler.codegen.cpp.nests.values import Base
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.nests.names import Names
from tcw.compiler.loops.dtypes import BYTES, compute_dtype
from tcw.compiler.loops.expressions import Address
from tcw.compiler.loops.sizes import Size, add, c_expression, multiply

STACK_BYTES = 1 << 17
"""Maximum scratch memory per thread on its stack; larger scratch is allocated on the heap."""


@dataclass(frozen=True, slots=True)
class Array:
    """A dense array over some axes, the lane axis last and padded to whole vectors."""

    base: Base
    address: Address
    size: Size
    """In elements."""


def padded(size: Size, lanes: int) -> Size:
    """The size rounded up to a multiple of the lanes; an upper bound if it is symbolic."""
    if isinstance(size, int):
        return -(-size // lanes) * lanes
    return add(size, lanes)


class Scratch:
    """Declares arrays at the beginning of a function."""

    def __init__(self, names: Names, vocabulary: Vocabulary) -> None:
        self.names = names
        self.vocabulary = vocabulary
        self.head = Code()
        self.foot = Code()
        self._stack = 0

    def array(
        self,
        wanted: str,
        dtype: str,
        sizes: list[tuple[int, Size]],
        rank: int,
        lanes: int,
        *,
        narrow: bool = False,
    ) -> Array:
        """An array over axes of these sizes, the last of which is padded to `lanes`. `narrow`: of
        elements as in memory, not as in registers."""
        strides, total = dense(sizes, rank, lanes)
        stored = dtype if narrow else compute_dtype(dtype)
        name = self.names.new(wanted)
        self.declare(name, stored, total)
        base = Base(name, stored, relative=True, writable=True, padded=True)
        return Array(base, Address(strides), total)

    def declare(self, name: str, dtype: str, elements: Size) -> None:
        """Declare an array of this many elements."""
        element = self.vocabulary.lanes(1).storage(dtype)
        bytes_ = multiply(elements, BYTES[dtype])
        if isinstance(bytes_, int) and self._stack + bytes_ <= STACK_BYTES:
            self._stack += bytes_
            self.head.add(f"alignas(64) {element} {name}[{max(bytes_ // BYTES[dtype], 1)}];")
        else:
            size = f"{c_expression(elements)} * sizeof({element})"
            self.head.add(f"{element}* {name} = ({element}*)__builtin_malloc({size});")
            self.foot.add(f"__builtin_free({name});")


def dense(sizes: list[tuple[int, Size]], rank: int, lanes: int) -> tuple[tuple[Size, ...], Size]:
    """Row-major strides for each of a nest's axes, and the size, of an array over some of them."""
    strides: list[Size] = [0] * rank
    total: Size = 1
    for place, (axis, size) in enumerate(reversed(sizes)):
        strides[axis] = total
        total = multiply(total, padded(size, lanes) if place == 0 else size)
    return tuple(strides), padded(total, lanes) if not sizes else total
