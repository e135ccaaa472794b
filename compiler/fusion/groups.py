"""A group: the compute nodes that become one loop nest."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.fusion.rows import Mask, kept_size, mask_of, row_view
from compiler.loops.graph import Compute, Reduce
from compiler.loops.layouts import Layout, View
from compiler.loops.sizes import Size, product


@dataclass(slots=True)
class Group:
    """Members in the order of the graph, over one flat domain.

    A member is at the level of elements (its domain is the group's) or of rows (its domain is the
    kept digits of `mask`). A reduction whose mask is the group's is main, any other rides along.
    """

    id: int
    members: list[Compute]
    size: Size
    mask: Mask | None = None
    riders: tuple[Mask, ...] = ()
    """Masks of riding reductions at the level of elements."""
    names: list[str] = field(default_factory=list)
    """Of its members and of what was inlined into them."""

    def level(self, member: Compute) -> View:
        """Flat index of the group -> flat index of the member's domain."""
        return () if self.is_element(member) else (self.rows(),)

    def is_element(self, member: Compute) -> bool:
        return product(member.domain) == self.size

    def rows(self) -> Layout:
        assert self.mask is not None
        return row_view(self.mask)

    @property
    def name(self) -> str:
        return self.members[0].name


def alone(id: int, node: Compute) -> Group:
    """A group of one node. Its reduction is main."""
    mask = mask_of(node.domain, node.reduced) if isinstance(node, Reduce) else None
    return Group(id, [node], product(node.domain), mask, names=[node.name])


def rows_of(group: Group) -> Size:
    return group.size if group.mask is None else kept_size(group.mask)
