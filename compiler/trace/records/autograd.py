"""AOTAutograd: what crosses from the forward to the backward graph, and why."""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *
from tcw.compiler.trace.records.measure import RandomOperation


class SavedValue(Part):
    """One value that the backward needs."""

    node: str
    """Its node in the joint graph, or in the forward graph if the partitioner added it."""
    choice: Literal["saved", "recomputed", "input"]
    """`input`: a forward input or parameter, kept alive by its owner anyway."""
    tensor: TensorMeta | None = None
    bytes: Bytes | None = None
    reason: str = ""
    """The rule in words: torch's ban reason, `cheaper than saving its inputs`, …"""
    weight: Number | None = None
    """Capacity of its edge in the min-cut."""
    location: Location | None = None


class Partition(Record):
    """The split of one joint graph."""

    compile_id: str
    joint: str
    forward: str
    backward: str
    values: tuple[SavedValue, ...]
    saved_bytes: Bytes | None = None
    recomputed: Count = 0
    """Operations of the forward that the backward recomputes."""
    drawn_again: tuple[RandomOperation, ...] = ()
    """Those of them that draw other random numbers than in the forward: gradients are wrong."""
    partitioner: str = ""
    cut_value: Number | None = None
