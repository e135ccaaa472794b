"""Builds a loop nest from a group of the value graph."""

from __future__ import annotations

from tcw.compiler.fusion.axes import axes_of, reduced_view
from tcw.compiler.fusion.groups import Group
from tcw.compiler.fusion.labels import label
from tcw.compiler.fusion.rows import mask_of
from tcw.compiler.fusion.statements import Statements, mask_bits
from tcw.compiler.loops.graph import Reduce
from tcw.compiler.loops.nest import Axis, Nest


def nest(group: Group, name: str, stored: frozenset[str]) -> Nest:
    """The nest of a group, which writes the group's `stored` values to memory."""
    axes = axes_of(group, group.members)
    reduced = 0
    for node in group.members:
        if not isinstance(node, Reduce) or not group.is_element(node):
            continue
        if mask_of(node.domain, node.reduced) == group.mask:
            reduced = mask_bits(axes.along(reduced_view(group, node)))
    statements = Statements(group, axes, stored, reduced)
    for node in group.members:
        statements.add(node)
    return Nest(
        name,
        tuple(Axis(size, bool(reduced >> i & 1)) for i, size in enumerate(axes.sizes)),
        statements.all(),
        label(group.members),
    )
