"""One result of a profile: what was lost or won, where, why, and what to try."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tcw.compiler.trace.records import Advice
from tcw.viewers.kit.figures import change_text
from tcw.viewers.summary.place import Place
from tcw.viewers.words import seconds_text

if TYPE_CHECKING:
    from tcw.viewers.summary.profile.rows import RegionRow

CauseKind = Literal[
    "precision", "recompile", "break", "attention", "padding", "spill", "threads", "copies",
    "fallback", "library", "capture", "recomputed", "host", "slower", "fused", "removed",
]  # fmt: skip


@dataclass(frozen=True)
class Suggestion:
    """Something that tcw can try itself; becomes a `Trial` record."""

    id: str
    """`engine tcw`, `override tcw/0/0/forward/parallel/cumsum = outer`."""
    words: str
    options: tuple[str, ...]
    """Options of `tcw profile` that try it; empty if only a person can change the source."""
    group: str = ""
    """Suggestions in one group are alternatives: no two of them are combined."""


def first_of_groups(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """The first suggestion of each group, which changes least, in order."""
    found: dict[str, Suggestion] = {}
    for one in suggestions:
        found.setdefault(one.group or one.id, one)
    return list(found.values())


@dataclass(frozen=True)
class Cause:
    """All texts may contain the user's words: show them as data."""

    kind: CauseKind
    title: str
    """`fused attention became 2 products and a softmax`: words from the trace."""
    seconds: float
    """Of one call; positive if compiling lost, negative if it won."""
    noise: float = 0.0
    estimated: bool = False
    """`seconds` is calculated (bytes over the measured bandwidth), not measured."""
    once: bool = False
    """`seconds` is paid in each recompile rather than in each call."""
    regions: tuple[str, ...] = ()
    place: Place | None = None
    """The user's line."""
    notes: tuple[str, ...] = ()
    """Further facts, one phrase each."""
    fixes: tuple[Advice, ...] = ()
    """What to try, best first."""
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def cost(self) -> str:
        """`+604 µs`, `≈12.0 µs`, `5.7 s`; `wrong` for results."""
        if self.kind == "precision":
            return "wrong"
        if self.once:
            return seconds_text(self.seconds)
        return change_text(self.seconds, self.estimated)

    @property
    def lost(self) -> bool:
        """Whether time was lost, or right results; or a break leaves a function to Python, whose
        cost no clock shows."""
        return self.seconds > 0 or self.kind in ("precision", "break")


def cause_of(
    *rows: RegionRow, kind: CauseKind, title: str, place: Place | None = None, **more: Any
) -> Cause:
    """The cause of the whole difference of these rows, unless `more` says otherwise. `place`: by
    default the first that a row has."""
    place = place or next((row.place for row in rows if row.place), None)
    seconds, noise = sum(row.difference for row in rows), sum(row.noise for row in rows)
    regions = tuple(region.id for row in rows for region in row.regions)
    given = {"seconds": seconds, "noise": noise, **more}
    return Cause(kind, title, regions=regions, place=place, **given)
