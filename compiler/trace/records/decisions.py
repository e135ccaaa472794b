"""The tcw engine's decisions: what could have been done, what was, and why."""

from __future__ import annotations

from compiler.trace.records.base import (
    Number,
    Record,
)


class Decided(Record):
    """One choice of our compiler, as it went through the gate."""

    id: str
    """`tcw/0/0/forward/fuse/exp+sum_1`: made of names of nodes, so that it holds across runs."""
    graph: str
    kind: str
    """`fuse`, `inline`, `reuse`, `save`, …"""
    default: str
    choice: str
    """What is carried out."""
    choices: tuple[str, ...] = ()
    rule: str = ""
    """Short stable name of the rule behind the default."""
    reason: str = ""
    numbers: dict[str, Number] = {}
    """What was weighed: bytes saved, working set, …"""
    overridden: bool = False
    """An override asked for this choice, and it is not the default."""
    wanted: str = ""
    """What an override asked for that was refused …"""
    refused: str = ""
    """… and the rule that forbids it."""
