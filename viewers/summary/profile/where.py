"""The location of a region whose operations have no user line."""

from __future__ import annotations

from tcw.viewers.summary.profile.rows import RegionRow

OUTSIDE = "outside graphs"
_PARTS = {"loss": "tcw's loss", "gradients": "autograd", "optimizer": "optimizer"}


def where(row: RegionRow) -> str:
    """`layers.0.attention`, `layers.*.attention` of several, `module 0` where it begins like a line
    number; else the part of a training step, the graph, or that it runs outside all graphs. "" if a
    line or nothing is known."""
    if row.locations:
        return ""
    if row.module:
        return f"module {row.module}" if row.module[0].isdigit() else row.module
    parts = {*(one.part for one in row.operations), *(one.part for one in row.steps)} - {"model"}
    if len(parts) == 1:
        return _PARTS[parts.pop()]
    graphs = [step.graph for step in row.steps if step.graph]
    return graphs[0] if graphs else OUTSIDE if row.steps else ""
