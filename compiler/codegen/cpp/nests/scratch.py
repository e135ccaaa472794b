"""Scratch memory of one thread: arrays as long as the loops inside a row, for kept values,
accumulators and carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.schedule import Schedule
from tcw.compiler.codegen.cpp.nests.vector_values import Base
from tcw.compiler.codegen.cpp.vocabulary import Lanes, Vocabulary
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.names import Names, base_name
from tcw.compiler.loops.dtypes import BYTES, compute_dtype
from tcw.compiler.loops.expressions import Address, Local
from tcw.compiler.loops.graph import ARG
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


class RowArrays:
    """Declares and initialises row arrays."""

    def __init__(
        self, facts: Facts, schedule: Schedule, scratch: Scratch, chunk: Size | None
    ) -> None:
        self.facts = facts
        self.schedule = schedule
        self.scratch = scratch
        self.chunk = chunk
        self.kept: dict[str, Array] = {}
        self.vector = scratch.vocabulary.lanes(schedule.lanes)
        self.scalar = scratch.vocabulary.lanes(1)

    def array(self, wanted: str, dtype: str, axes: frozenset[int]) -> Array:
        nest = self.facts.nest
        sizes: list[tuple[int, Size]] = []
        for axis in self.schedule.row():
            if axis in axes:
                size = nest.axes[axis].size
                if axis == self.schedule.lane and self.chunk is not None:
                    size = self.chunk
                sizes.append((axis, size))
        return self.scratch.array(wanted, dtype, sizes, len(nest.axes), self.schedule.lanes)

    def keep(self, name: str) -> Array:
        """The row buffer of a value."""
        if name not in self.kept:
            statement = self.facts.named[name]
            axes = self.facts.axes(Local(name, statement.dtype))
            self.kept[name] = self.array(f"{base_name(name)}_row", statement.dtype, axes)
        return self.kept[name]

    def fill(self, array: Array, start: Callable[[Lanes], str], scope: Scope) -> None:
        """Fill an array."""
        each, loop = Elements(self, array), Code()
        loop.add(each.store(array.base.name, start(each.lanes)))
        scope.code.loop(each.head, loop)

    def fill_identity(self, array: Array, op: str, scope: Scope) -> None:
        dtype = array.base.dtype
        self.fill(array, lambda lanes: lanes.identity(ARG.get(op, op), dtype), scope)

    def add(self, to: Array, other: Array, scope: Scope) -> None:
        """Add an array to one of the same layout."""
        each, loop = Elements(self, to), Code()
        one, two = each.load(to.base.name), each.load(other.base.name)
        loop.add(each.store(to.base.name, each.lanes.combine("sum", one, two, to.base.dtype)))
        scope.code.loop(each.head, loop)


class Elements:
    """The elements of an array in turn, vector by vector if it has a result per lane."""

    def __init__(self, arrays: RowArrays, array: Array) -> None:
        lane, size = arrays.schedule.lane, c_expression(array.size)
        along = lane is not None and array.address.strides[lane] != 0
        self.lanes = arrays.vector if along else arrays.scalar
        count = self.lanes.count
        whole = isinstance(array.size, int) and array.size % count == 0
        self._dtype = array.base.dtype
        self._left = "" if whole else f"{size} - i < {count} ? {size} - i : {count}"
        self.head = f"for (long i = 0; i < {size}; i += {count})"

    def load(self, base: str) -> str:
        if self._left:
            return self.lanes.load_partial(self._dtype, f"{base} + i", self._left)
        return self.lanes.load(self._dtype, f"{base} + i")

    def store(self, base: str, value: str) -> str:
        if self._left:
            return self.lanes.store_partial(self._dtype, f"{base} + i", value, self._left)
        return self.lanes.store(self._dtype, f"{base} + i", value)
