"""A group: compute nodes that become one loop nest."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcw.compiler.fusion.rows import Mask, elements, mask_of, merged, row_view
from tcw.compiler.loops.graph import ARG, Compute, Reduce, Scan
from tcw.compiler.loops.layouts import Layout, View
from tcw.compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class Space:
    """A group's iteration domain: a flat domain, and which of its digits form a row."""

    size: Size
    mask: Mask | None = None
    riders: tuple[Mask, ...] = ()
    """Masks of riding reductions over other digits, without duplicates."""


@dataclass(slots=True)
class Group:
    """Members in graph order, over one flat domain.

    A member is at element level (its domain is the group's) or at row level (its domain is the kept
    digits of the mask). A reduction with the group's mask is a main reduction; any other is a
    rider.
    """

    id: int
    """Place of the group's initial node."""
    places: list[int]
    """Places of the members, in order."""
    members: list[Compute]
    space: Space
    names: list[str] = field(default_factory=list)
    """Names of the members and of the nodes inlined into them."""
    buffers: frozenset[str] = frozenset()
    """Memory that the group would read or write if all its values were stored."""
    changed: int = 0
    """The number of the merge that last changed the group."""
    nest: str = ""
    """Name of the resulting nest."""

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
    """The space of a single node.

    A reduction defines rows, unless its first digit is reduced: then it may ride in another loop.
    """
    size = elements(node.domain)
    if isinstance(node, Scan):
        return Space(size, merged((s, d == node.digit) for d, s in enumerate(node.domain)))
    if not isinstance(node, Reduce):
        return Space(size)
    mask = mask_of(node.domain, node.reduced)
    if mask[0][1] and node.op not in ARG:
        return Space(size, None, (mask,))
    return Space(size, mask)


def final_space(group: Group, limit: int, accumulators: int) -> Space:
    """The space to emit: lone reductions that need too many accumulators get rows of their own."""
    space = group.space
    lonely = all(isinstance(node, Reduce) for node in group.members)
    if space.mask is None and len(space.riders) == 1 and lonely and accumulators > limit:
        return Space(space.size, space.riders[0])
    return space
