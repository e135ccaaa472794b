"""What fusion says of its pairs, and to whom: to a listener as each decision falls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from compiler.fusion.candidates import Kind

Step = Literal["vertical", "horizontal", "pieces", "twins", "joined"]
"""What a pass goes over. `joined`: no pass, but the pairs that came together through others."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair that was considered, as it was decided last."""

    id: str
    first: str
    second: str
    """The two nodes."""
    first_group: tuple[str, ...]
    second_group: tuple[str, ...]
    """The nodes that shared a nest with each of them by then."""
    kind: Kind
    fused: bool
    rule: str
    reason: str
    score: int
    """Bytes that it saves: written and read again, or read twice."""
    shared_bytes: int | None
    """Bytes of inputs that both read; None where that is not what they are weighed by."""
    working_set: int | None
    """Bytes of accumulators that the common loop holds; None where no loop can be common."""
    parallelism: int | None
    """Rows (or elements) that can run at once; None likewise."""
    round: int = 0
    """The pass in which it was decided so, from 1."""


@dataclass(frozen=True, slots=True)
class Round:
    """One pass over the candidates."""

    kind: Step
    candidates: int
    fused: int
    groups: int
    """How many are left."""


class Listener(Protocol):
    """Somebody who is told while fusion goes on."""

    def pair(self, pair: Pair) -> None:
        """A pair was decided; one that is weighed again in a later pass comes again."""

    def round(self, number: int, round: Round, fused: list[Pair]) -> None:
        """A pass is over; `fused` are its pairs that came together, in order."""

    def known_as(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """The names under which the listener knows these nodes of the value graph."""
