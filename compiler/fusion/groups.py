"""A group: the compute nodes that become one loop nest."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.fusion.counts import elements
from compiler.fusion.rows import Mask, mask_of, merged, row_view
from compiler.loops.graph import Compute, Reduce, Scan
from compiler.loops.layouts import Layout, View
from compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class Space:
    """What a group iterates over: a flat domain, and which of its digits make a row."""

    size: Size
    mask: Mask | None = None
    riders: tuple[Mask, ...] = ()
    """Masks of reductions over other digits that ride along, each once."""


@dataclass(slots=True)
class Group:
    """Members in the order of the graph, over one flat domain.

    A member is at the level of elements (its domain is the group's) or of rows (its domain is the
    kept digits of the mask). A reduction whose mask is the group's is main, any other rides along.
    """

    id: int
    """Place of the unit that it began with."""
    places: list[int]
    """Places of its members, in order."""
    members: list[Compute]
    space: Space
    names: list[str] = field(default_factory=list)
    """Of its members and of what was inlined into them."""
    buffers: frozenset[str] = frozenset()
    """Memory that it would read or write, were all its values stored."""
    changed: int = 0
    """The merge after which it is as it is."""
    nest: str = ""
    """Name of the nest that it became."""

    @property
    def size(self) -> Size:
        return self.space.size

    @property
    def mask(self) -> Mask | None:
        return self.space.mask

    def level(self, member: Compute) -> View:
        """Flat index of the group -> flat index of the member's domain."""
        return () if self.is_element(member) else (self.rows(),)

    def is_element(self, member: Compute) -> bool:
        return elements(member.domain) == self.space.size

    def rows(self) -> Layout:
        assert self.space.mask is not None
        return row_view(self.space.mask)

    @property
    def name(self) -> str:
        return self.members[0].name


def space_of(node: Compute) -> Space:
    """The space of a node alone.

    A reduction makes rows, unless its first digit is reduced: then it may ride in another's loop.
    """
    size = elements(node.domain)
    if isinstance(node, Scan):
        last = len(node.domain) - 1
        return Space(size, merged((s, d == last) for d, s in enumerate(node.domain)))
    if not isinstance(node, Reduce):
        return Space(size)
    mask = mask_of(node.domain, node.reduced)
    if mask[0][1] and node.op not in ("argmax", "argmin"):
        return Space(size, None, (mask,))
    return Space(size, mask)


def final_space(group: Group, limit: int, accumulators: int) -> Space:
    """Riders without a loop to ride in, too wide for accumulators, make rows of their own."""
    space = group.space
    lonely = all(isinstance(node, Reduce) for node in group.members)
    if space.mask is None and len(space.riders) == 1 and lonely and accumulators > limit:
        return Space(space.size, space.riders[0])
    return space
