"""The axes of a nest: the fewest digits in which its accesses are sums of stride times axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcw.compiler.fusion.groups import Group
from tcw.compiler.fusion.leaves import leaves
from tcw.compiler.fusion.rows import common, mask_of, part_view
from tcw.compiler.loops.expressions import Address
from tcw.compiler.loops.graph import Compute, Reduce, Scan, Store
from tcw.compiler.loops.layouts import (
    Layout,
    Shape,
    View,
    compose_views,
    normalize,
    row_major,
    strides_over,
)


@dataclass(slots=True)
class Axes:
    """Digits of a group's flat domain, and accesses expressed in them."""

    sizes: Shape

    def address(self, view: View) -> Address:
        """The address of `view` applied to the group's flat index."""
        if not view:
            return Address(row_major(self.sizes).strides)
        strides = strides_over(view[-1], self.sizes)
        if strides is None:
            return Address(row_major(self.sizes).strides, 0, view)
        return Address(strides, view[-1].offset, view[:-1])

    def along(self, layout: Layout) -> tuple[int, ...]:
        """The axes along which a layout varies; they must refine it."""
        strides = strides_over(layout, self.sizes)
        assert strides is not None, (layout, self.sizes)
        return tuple(axis for axis, stride in enumerate(strides) if stride != 0)

    def moves(self, address: Address) -> tuple[int, ...]:
        """The axes along which an address varies."""
        return tuple(axis for axis, stride in enumerate(address.strides) if stride != 0)


def axes_of(group: Group, members: list[Compute]) -> Axes:
    """Axes for all required splits (rows, reductions, scans), then for accesses where possible."""
    sizes: Shape = (group.size,)
    for layout in _required(group, members):
        found = common(sizes, layout.shape) if layout.shape else sizes
        assert found is not None, (group.name, sizes, layout)
        sizes = found
    scans = [scan_view(group, node) for node in members if isinstance(node, Scan)]
    for view in _accesses(group, members):
        if not view or not (shape := normalize(view[-1]).shape):
            continue
        found = common(sizes, shape)
        if found is not None and all(_single(scan, found) for scan in scans):
            sizes = found
    kept = tuple(size for size in sizes if size != 1)
    return Axes(kept or (1,))


def _required(group: Group, members: list[Compute]) -> Iterator[Layout]:
    if group.mask is not None:
        yield part_view(group.mask, reduced=True)
        yield part_view(group.mask, reduced=False)
    for node in members:
        if isinstance(node, Reduce):
            yield reduced_view(group, node)
            yield kept_view(group, node)
        elif isinstance(node, Scan):
            yield scan_view(group, node)


def reduced_view(group: Group, node: Reduce) -> Layout:
    """Flat index of the group -> index within the digits that a reduction reduces."""
    return _lifted(group, node, part_view(mask_of(node.domain, node.reduced), reduced=True))


def kept_view(group: Group, node: Reduce) -> Layout:
    """Flat index of the group -> index in a reduction's value."""
    return _lifted(group, node, part_view(mask_of(node.domain, node.reduced), reduced=False))


def scan_view(group: Group, node: Scan) -> Layout:
    """Flat index of the group -> position along the scanned digit."""
    strides = tuple(1 if digit == node.digit else 0 for digit in range(len(node.domain)))
    return _lifted(group, node, normalize(Layout(node.domain, strides)))


def _lifted(group: Group, node: Compute, layout: Layout) -> Layout:
    lifted = compose_views((layout,), group.level(node))
    if not lifted:
        return normalize(row_major((group.size,)))
    assert len(lifted) == 1, (group.name, node.name, layout)
    return lifted[0]


def _single(layout: Layout, sizes: Shape) -> bool:
    strides = strides_over(layout, sizes)
    return strides is not None and sum(stride != 0 for stride in strides) <= 1


def _accesses(group: Group, members: list[Compute]) -> Iterator[View]:
    for node in members:
        level = group.level(node)
        if isinstance(node, Store):
            yield compose_views(node.view, level)
        for view in dict.fromkeys(leaf.view for leaf in leaves(node)):
            yield compose_views(view, level)
