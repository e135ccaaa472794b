"""Indices: a flat position of a dimension as the digits that an address needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tcw.compiler.codegen.triton.scopes import Scope
from tcw.compiler.loops.expressions import Address
from tcw.compiler.loops.layouts import View
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.sizes import Size, Symbolic, multiply

FAR = (1 << 31) - 1
"""Largest index that 32 bits hold."""


@dataclass(slots=True)
class Dimension:
    """One dimension of a tile: `name` holds the flat positions along its axes."""

    name: str
    axes: tuple[int, ...]
    size: Size
    block: int
    mask: str = ""
    """The variable that is true for positions within `size`; "" if all are."""
    scope: Scope | None = None
    """Where the positions are defined."""
    digits: dict[tuple[Size, Size], str] = field(default_factory=dict)
    start: str = ""
    """The first position of the block."""
    suffix: str = ""
    """The index that gives the positions their place in the tile: `[None, :]`."""
    firsts: Dimension | None = None
    """Of each run of neighbouring positions the first, if a load has asked for them."""

    def define(self, start: str, suffix: str, scope: Scope, apart: int = 1) -> None:
        """Define the positions of a block, `apart` from each other. They have no mask yet."""
        step = f" * {apart}" if apart != 1 else ""
        lane = f"tl.arange(0, {self.block}){suffix}{step}"
        scope.add(f"{self.name} = {start} + {lane}" if start else f"{self.name} = {lane}")
        self.start, self.suffix, self.scope = start, suffix, scope
        self.digits, self.firsts, self.mask = {}, None, ""

    def define_mask(self) -> None:
        """Define which positions are below the size."""
        assert self.scope is not None
        self.mask = f"{self.name}mask"
        self.scope.add(f"{self.mask} = {self.name} < {text(self.size)}")

    def runs(self, width: int) -> Dimension:
        """The first positions of runs of `width` positions, defined where the positions are."""
        if self.firsts is None:
            assert self.scope is not None
            name = f"{self.name}run"
            self.firsts = Dimension(name, self.axes, self.size, self.block // width)
            self.firsts.define(self.start, self.suffix, self.scope, width)
            if self.mask:
                self.firsts.define_mask()
        return self.firsts


def text(size: Size) -> str:
    """A size as Python text that can follow any operator."""
    if not isinstance(size, Symbolic):
        return str(size)
    written = str(size)
    return written if written.isidentifier() else f"({written})"


def parts(nest: Nest, address: Address, dimension: Dimension) -> list[tuple[Size, Size, Size]]:
    """What an address adds along a dimension: (positions below a digit, its size, its stride).

    Neighbouring axes that the address traverses as one are one digit.
    """
    found: list[list[Size]] = []
    for axis in reversed(dimension.axes):
        size, stride = nest.axes[axis].size, address.strides[axis]
        below = nest.size(a for a in dimension.axes if a > axis)
        if size == 1:
            continue
        if found:
            low, width, step = found[-1]
            if stride == multiply(step, width) and below == multiply(low, width):
                found[-1][1] = multiply(width, size)
                continue
        found.append([below, size, stride])
    return [(low, width, step) for low, width, step in reversed(found) if step != 0]


def digit(dimension: Dimension, below: Size, size: Size) -> str:
    """A digit of the dimension's flat position, as a variable where the position is defined."""
    if below == 1 and size == dimension.size:
        return dimension.name
    known = dimension.digits.get((below, size))
    if known is not None:
        return known
    written = dimension.name if below == 1 else f"{dimension.name} // {text(below)}"
    if multiply(below, size) != dimension.size:
        written = f"{written} % {text(size)}"
    name = f"{dimension.name}{len(dimension.digits)}"
    dimension.digits[below, size] = name
    assert dimension.scope is not None
    dimension.scope.add(f"{name} = {written}")
    return name


def offset(nest: Nest, address: Address, dimensions: Sequence[Dimension]) -> str:
    """The text of an address before its chain; "0" for the first element."""
    terms: list[str] = []
    for dimension in dimensions:
        for below, size, stride in parts(nest, address, dimension):
            name = digit(dimension, below, size)
            terms.append(name if stride == 1 else f"{name} * {text(stride)}")
    if address.offset != 0:
        terms.append(text(address.offset))
    return " + ".join(terms).replace("+ -", "- ") or "0"


def through(view: View, at: str) -> str:
    """A position after a chain of layouts, which apply last to first, by division and remainder."""
    for layout in reversed(view):
        terms: list[str] = []
        below: Size = 1
        for size, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
            if stride != 0 and size != 1:
                part = f"({at})" if below == 1 else f"({at}) // {text(below)}"
                if multiply(below, size) != layout.size:
                    part = f"({part}) % {text(size)}"
                terms.append(f"({part}) * {text(stride)}" if stride != 1 else f"({part})")
            below = multiply(below, size)
        if layout.offset != 0:
            terms.append(text(layout.offset))
        at = " + ".join(terms) or "0"
    return at
