"""The decisions of an engine: what was asked of a person, and what was decided."""

from __future__ import annotations

from compiler.trace.records.base import (
    Location,
    Number,
    Part,
    Record,
    TextHash,
)


class Forbidden(Part):
    """Why one choice of a decision is illegal."""

    choice: str
    rule: str
    reason: str


class OfDecision(Record, kw_only=True):
    """What both records of a decision have: the `compiler.decision.Decision` that it is."""

    id: str
    """`tcw/0/0/forward/fuse/exp+sum_1`: made of node names, so it is the same in every run."""
    graph: str
    kind: str
    """`fuse`, `inline`, `reuse`, `save`, `lowering`, `width`, …"""
    default: str
    """The engine's own choice."""
    choices: tuple[str, ...] = ()
    rule: str = ""
    """Short stable name of the rule behind the default."""
    reason: str = ""
    numbers: dict[str, Number] = {}
    """The quantities compared: bytes saved, working set, …"""


class Asked(OfDecision):
    """A decision before it is made: everything there is to know before choosing.

    Written when the compile waits at a decision, before `Waiting`; `Decided` has the choice.
    """

    forbidden: tuple[Forbidden, ...] = ()
    first: tuple[str, ...] = ()
    """Scheduler nodes of the first side, if the decision is about two: `op9`, `op10`."""
    second: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    """Nodes of the lowered (or joint) graph that it concerns."""
    if_fused: TextHash = ""
    """The loop nest that both sides would become: for Inductor in the notation of
    `SchedulerNode.loops`, for tcw as printed by the nest printer."""
    sketched: bool = False
    """We composed `if_fused` from both sides: the engine makes the nest only later, or a rule
    forbids it; then `✗ RULE: reads VALUE` follows each read that it is about."""
    means: str = ""
    """What keeping them apart means here: `two loop nests, which may share one C++ function`."""
    location: Location | None = None


class Decided(OfDecision):
    """One choice, as decided at the gate."""

    choice: str
    """The choice that was carried out."""
    overridden: bool = False
    """Whether an override asked for this choice, which is not the default."""
    wanted: str = ""
    """The choice of an override that was refused …"""
    refused: str = ""
    """… and the rule that forbids it."""
