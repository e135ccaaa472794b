"""One thing that a profile found out: what was lost or won, where, why, and what to try."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compiler.trace import refs
from compiler.trace.records import Advice
from viewers.summary.place import Place

Kind = Literal[
    "precision", "recompile", "break", "attention", "padding", "spill", "threads", "copies",
    "fallback", "library", "capture", "recomputed", "host", "slower", "fused", "removed",
]  # fmt: skip


@dataclass(frozen=True)
class Suggestion:
    """Something that tcw can try by itself: see the record `Trial`, which it becomes."""

    id: str
    """`engine tcw`, `override tcw/0/0/forward/parallel/cumsum = outer`."""
    words: str
    options: tuple[str, ...]
    """Options of `tcw profile` that ask for it; empty where a person has to change the source."""
    group: str = ""
    """Suggestions of one group are ways to do one thing: no two of them are taken together."""


def first_of_groups(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """One way to do each thing, in order: the first, which changes least."""
    found: dict[str, Suggestion] = {}
    for one in suggestions:
        found.setdefault(one.group or one.id, one)
    return list(found.values())


@dataclass(frozen=True)
class Cause:
    """All texts may hold the user's words: show them as data."""

    kind: Kind
    title: str
    """`fused attention became 2 products and a softmax`: words that the trace has."""
    seconds: float
    """Of one call; above 0 compiling lost them, below 0 it won."""
    noise: float = 0.0
    estimated: bool = False
    """`seconds` is worked out (bytes over the measured bandwidth), not measured."""
    once: bool = False
    """`seconds` is paid in each recompile rather than in each call."""
    regions: tuple[str, ...] = ()
    place: Place | None = None
    """The user's line."""
    notes: tuple[str, ...] = ()
    """Further facts, a phrase each."""
    fixes: tuple[Advice, ...] = ()
    """What to try, best first."""
    suggestions: tuple[Suggestion, ...] = ()
    refs: tuple[refs.Ref, ...] = ()

    @property
    def lost(self) -> bool:
        """A break that leaves a function to Python costs what no clock of it shows."""
        return self.seconds > 0 or self.kind in ("precision", "break")
