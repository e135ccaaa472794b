"""What fusion records about pairs, and the listener that receives each decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from compiler.fusion.candidates import Kind

Step = Literal["vertical", "horizontal", "pieces", "twins", "joined"]
"""The kinds of pass. `joined` is for pairs that came together through others, not a pass."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The latest decision about a pair."""

    id: str
    first: str
    second: str
    """The other of the two nodes."""
    first_group: tuple[str, ...]
    second_group: tuple[str, ...]
    """The nodes that shared a nest with `first` and with `second` at that time."""
    kind: Kind
    fused: bool
    rule: str
    reason: str
    score: int
    """Bytes that fusing saves: written and read again, or read twice."""
    shared_bytes: int | None
    """Bytes of inputs that both read; None for candidates not scored by them."""
    working_set: int | None
    """Bytes of accumulators that the common loop holds; None if no common loop is possible."""
    parallelism: int | None
    """Rows (or elements) that can run in parallel; None if no common loop is possible."""
    round: int = 0
    """The pass that made the decision, from 1."""


@dataclass(frozen=True, slots=True)
class Round:
    """One pass over the candidates."""

    kind: Step
    candidates: int
    fused: int
    groups: int
    """The number of groups left."""


class Listener(Protocol):
    """Receives decisions during fusion."""

    def pair(self, pair: Pair) -> None:
        """A pair was decided. A pair reconsidered in a later pass is reported again."""

    def round(self, number: int, round: Round, fused: list[Pair]) -> None:
        """A pass is complete; `fused` are the pairs that it fused, in order."""

    def known_as(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """The names under which the listener knows these nodes of the value graph."""
