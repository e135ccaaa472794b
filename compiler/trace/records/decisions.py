"""The tcw engine's decisions: the alternatives, the choice, and why."""

from __future__ import annotations

from compiler.trace.records.base import (
    Number,
    Record,
)


class Decided(Record):
    """One choice of our compiler, as decided at the gate."""

    id: str
    """`tcw/0/0/forward/fuse/exp+sum_1`: made of node names, so it is the same in every run."""
    graph: str
    kind: str
    """`fuse`, `inline`, `reuse`, `save`, …"""
    default: str
    choice: str
    """The choice that was carried out."""
    choices: tuple[str, ...] = ()
    rule: str = ""
    """Short stable name of the rule behind the default."""
    reason: str = ""
    numbers: dict[str, Number] = {}
    """The quantities compared: bytes saved, working set, …"""
    overridden: bool = False
    """Whether an override asked for this choice, which is not the default."""
    wanted: str = ""
    """The choice of an override that was refused …"""
    refused: str = ""
    """… and the rule that forbids it."""
