"""The decisions of an engine: what may be chosen, what was chosen, and how a pair was tested."""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *
from tcw.compiler.trace.records.loops import LoopLine


class Forbidden(Part):
    """Why one choice of a decision is illegal."""

    choice: str
    rule: str
    reason: str


class Shown(Part):
    """What a person sees of a decision while the compile waits for their choice."""

    first: tuple[str, ...] = ()
    """Scheduler nodes of the first side, if the decision is about two: `op9`, `op10`."""
    second: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    """Nodes of the lowered (or joint) graph that it concerns."""
    if_fused: TextHash = ""
    """The loop nest that both sides would become, as the nest printer of tcw writes it."""
    nest: tuple[LoopLine, ...] = ()
    """The same of Inductor, from the loops of its nodes."""
    sketched: bool = False
    """We composed the nest from both sides: the engine makes it only later, or a rule forbids it;
    then `✗ RULE: reads VALUE` in `if_fused` follows each read that it is about."""
    means: str = ""
    """What keeping them apart means here: `two loop nests, which may share one C++ function`."""
    location: Location | None = None


class FusionPair(Part):
    """One test of two scheduler nodes. A pair is tested again in later rounds and at commit."""

    graph: str
    """The lowered graph, whose scheduler nodes these are: `0/0/forward/lowered`."""
    first: str
    second: str
    round: Index
    """From 1; 0 if the engine does not say: then a pair is recorded once, with its outcome."""
    phase: Literal["screen", "commit"]
    kind: Literal["vertical", "horizontal"] = "vertical"
    """`vertical`: the second reads what the first writes."""
    check: str = ""
    """If Inductor gives no reason: the function that returned False, and what it checks."""
    score: tuple[Number, ...] = ()
    """The engine's score of a pair that may fuse, with the parts in its order."""
    score_text: str = ""
    cycle: bool = False
    """can_fuse returned True, but fusing would have made the graph cyclic."""
    within: str = ""
    """Id of the pair of groups whose test led to this pair of members."""


class Decided(Record):
    """A `tcw.compiler.protocol.decision.Decision` and its choice.

    Written each time that the decision is made, and before, without a choice, if the compile waits
    for a person to make it. Inductor tests a pair in several rounds: there `choice` says whether
    the two may fuse, and `FusionRound.fused` which were fused.
    """

    id: str
    """`tcw/0/0/forward/fuse/exp+sum_1`: made of node names, so it is the same in every run."""
    graph: str
    kind: str
    """`fuse`, `inline`, `reuse`, `save`, `lowering`, `width`, …"""
    default: str
    """The engine's own choice."""
    choice: str = ""
    """The choice that was carried out; "" while a person is asked."""
    choices: tuple[str, ...] = ()
    rule: str = ""
    """Short stable name of the rule behind the default."""
    reason: str = ""
    """The engine's reason for the default; Inductor's own words, with arguments filled in."""
    between: tuple[str, ...] = ()
    """Scheduler nodes that stand between the two sides of a fusion and keep them apart: `op7`;
    the first few, in the order in which they run."""
    numbers: dict[str, Number] = {}
    """The quantities compared: bytes saved, bytes that both sides access, working set, …"""
    forbidden: tuple[Forbidden, ...] = ()
    """The illegal choices; filled in while a person is asked."""
    overridden: bool = False
    """Whether an override asked for this choice, which is not the default."""
    by: str = ""
    """Id of that override, if it is about another decision: a veto on two of the same nodes."""
    wanted: str = ""
    """The choice of an override that was refused."""
    refused: str = ""
    """The rule that forbids `wanted`."""
    shown: Shown = Shown()
    """Filled in while a person is asked."""
    pair: FusionPair | None = None
    """The test that led to this choice, if the decision is about the fusion of two nodes."""

    @property
    def open(self) -> bool:
        """Whether a person is asked, and nothing is chosen yet."""
        return not self.choice

    @property
    def sides(self) -> tuple[str, str]:
        """Both sides of a fusion as scheduler nodes: ("op9_op10", "op12"); empty if not known."""
        if self.pair is not None:
            return self.pair.first, self.pair.second
        return "_".join(self.shown.first), "_".join(self.shown.second)
