"""What fusion records about pairs, and the listener that receives each decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from tcw.compiler.fusion.candidates import CandidateKind
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.trace.records import FusionPair

PassKind = Literal["vertical", "horizontal", "pieces", "twins"]
"""The kinds of pass."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The latest decision about a pair, and how it ended."""

    decision: Decision
    """Its rule and reason are those of the outcome, also if an override or other pairs led to it.
    Its numbers: `saved_bytes` (written and read again, or read twice); `shared_bytes` of inputs
    that both read, if the candidate was scored by them; and, if a common loop is possible, its
    `working_set` (bytes of accumulators) and `parallelism` (rows or elements)."""
    first_group: tuple[str, ...]
    second_group: tuple[str, ...]
    """The nodes that shared a nest with the first and with the second at that time."""
    kind: CandidateKind
    fused: bool
    round: int = 0
    """The pass that made the decision, from 1."""

    @property
    def id(self) -> str:
        return self.decision.id

    @property
    def first(self) -> str:
        return self.decision.names[0]

    @property
    def second(self) -> str:
        """The other of the two nodes."""
        return self.decision.names[1]

    @property
    def rule(self) -> str:
        return self.decision.rule


class Listener(Protocol):
    """Receives decisions during fusion."""

    def tested(self, pair: Pair) -> FusionPair:
        """Describes the test of a pair for the record of its decision, which the gate is about to
        make: `pair.fused` is what the engine would do. A pair is tested again in later passes."""

    def round(self, number: int, groups: int, fused: list[Pair]) -> None:
        """A pass is complete, and leaves this many groups; `fused` are the pairs that it fused, in
        order."""

    def known_as(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """The names under which the listener knows these nodes of the value graph."""
