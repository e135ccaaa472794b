"""Flat spaces and the addresses valid in them: bounds of layouts, symbols, names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tcw.compiler.loops.expressions import IndexTerm
from tcw.compiler.loops.graph import Buffer, Graph, Input, Map, Reduce, Result, Scan, extent
from tcw.compiler.loops.layouts import Shape, View
from tcw.compiler.loops.sizes import Size, evaluate, symbol_values, symbols_of


class Malformed(ValueError):
    """A graph, nest or program breaks a rule of the loop IR. The message names place and rule."""


def require(condition: bool, where: str, what: str) -> None:
    """Raises Malformed unless the condition holds."""
    if not condition:
        raise Malformed(f"{where}: {what}")


@dataclass(frozen=True, slots=True)
class ValueSpace:
    """A value's memory: its dtype and the number of elements that flat indices may address."""

    dtype: str
    size: int | None
    """None if one of its symbols has no hint."""


Range = tuple[int, int] | None
"""Least and greatest index. None if unknown, or if there are no indices."""


class Numbers:
    """Sizes as numbers. Symbolic sizes use their hints."""

    def __init__(self, graph: Graph) -> None:
        self.known = {name for name in graph.parameters if isinstance(name, str)}
        self.known |= set(graph.symbols)
        self.hints = dict(graph.hints)
        try:
            missing = {n: text for n, text in graph.symbols.items() if n not in self.hints}
            self.hints = symbol_values(self.hints, missing)
        except (NameError, ArithmeticError, SyntaxError, TypeError):
            pass

    def of(self, size: Size) -> int | None:
        if isinstance(size, int):
            return size
        if not symbols_of(size) <= self.hints.keys():
            return None
        return evaluate(size, self.hints)

    def shape(self, shape: Shape) -> tuple[int, ...] | None:
        found = [self.of(size) for size in shape]
        numbers = tuple(size for size in found if size is not None)
        return numbers if len(numbers) == len(shape) else None

    def check_symbols(self, sizes: Iterable[Size], where: str) -> None:
        for size in sizes:
            for name in sorted(symbols_of(size)):
                require(
                    name in self.known,
                    where,
                    f"{name} is defined by neither an argument nor a formula",
                )
            if isinstance(size, int):
                require(not isinstance(size, bool), where, f"{size} is not a size")

    def span(self, shape: Shape, strides: tuple[Size, ...]) -> int | None:
        """The number of elements from the first to the last of a strided tensor."""
        sizes, steps = self.shape(shape), self.shape(strides)
        if sizes is None or steps is None:
            return None
        if 0 in sizes:
            return 0
        return 1 + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))

    def space(self, value: Input | Map | Reduce | Scan | Buffer | Result) -> ValueSpace:
        if isinstance(value, (Input, Result)):
            return ValueSpace(value.dtype, self.span(value.shape, value.strides))
        return ValueSpace(value.dtype, self.of(extent(value)))

    def reach(self, sizes: Shape, strides: tuple[Size, ...], offset: Size, where: str) -> Range:
        """The range of offset + sum(digit * stride)."""
        require(len(sizes) == len(strides), where, f"{len(sizes)} digits, {len(strides)} strides")
        counts, steps, low = self.shape(sizes), self.shape(strides), self.of(offset)
        if counts is None or steps is None or low is None or 0 in counts:
            return None
        high = low
        for count, step in zip(counts, steps, strict=True):
            low += min(0, (count - 1) * step)
            high += max(0, (count - 1) * step)
        return low, high

    def through(self, view: View, reached: Range, where: str) -> Range:
        """The range of view(index) for a range of indices, which each layout must contain."""
        for layout in reversed(view):
            self.check_symbols((*layout.shape, *layout.strides, layout.offset), where)
            within(reached, self.of(layout.size), f"{where}, layout {layout}")
            reached = self.reach(layout.shape, layout.strides, layout.offset, where)
        return reached

    def view(self, view: View, domain: Shape, where: str) -> Range:
        """The range of a view over a whole domain, which its layouts must cover exactly."""
        size = self._size(domain)
        if view:
            taken = self.of(view[-1].size)
            if size is not None and taken is not None:
                require(
                    size == taken, where, f"{view[-1]} maps {taken} indices of a domain of {size}"
                )
        return self.through(view, None if not size else (0, size - 1), where)

    def terms(self, reached: Range, terms: tuple[IndexTerm, ...], where: str) -> Range:
        """The range extended by everything that the indices can add."""
        for term in terms:
            self.check_symbols((term.size, term.stride), where)
            require(term.index.dtype == "int64", where, f"an index has dtype {term.index.dtype}")
            size, stride = self.of(term.size), self.of(term.stride)
            if reached is None or size is None or stride is None or size == 0:
                return None
            move = (size - 1) * stride
            reached = reached[0] + min(0, move), reached[1] + max(0, move)
        return reached

    def _size(self, shape: Shape) -> int | None:
        counts = self.shape(shape)
        if counts is None:
            return None
        total = 1
        for count in counts:
            total *= count
        return total


def within(reached: Range, size: int | None, where: str) -> None:
    """Raises Malformed unless the whole range lies in a space of this size."""
    if reached is None or size is None:
        return
    low, high = reached
    require(
        low >= 0 and high < size, where, f"indices {low} to {high} in a space of {size} elements"
    )


def defined(names: Mapping[str, object], name: str, where: str) -> None:
    require(name in names, where, f"{name} is not defined before it is used")


def fresh(names: Mapping[str, object], name: str, where: str) -> None:
    require(bool(name), where, "has no name")
    require(name not in names, where, f"the name {name} is taken")
