"""One result of a profile: what was lost or won, where, why, and what to try; and which of what was
tried to recommend."""

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
from collections.abc import Sequence

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Trial
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow

CauseKind = Literal[
    "precision", "recompile", "break", "attention", "padding", "spill", "threads", "copies",
    "fallback", "library", "capture", "recomputed", "loops", "host", "slower", "fused", "removed",
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
    for suggestion in suggestions:
        found.setdefault(suggestion.group or suggestion.id, suggestion)
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


MOST = 2
"""Maximum number of decisions suggested for one region."""

REDUCE_OVERHEAD = Suggestion(
    id="mode reduce-overhead", words="mode reduce-overhead", options=("--mode", "reduce-overhead")
)
MAX_AUTOTUNE = Suggestion(
    id="mode max-autotune", words="mode max-autotune", options=("--mode", "max-autotune")
)
DYNAMIC = Suggestion(
    id="dynamic", words="sizes and numbers dynamic from the start", options=("--dynamic",)
)


def other_engine(index: Index) -> tuple[Suggestion, ...]:
    """Our engine, if the other one was recorded on the CPU."""
    settings = index.recording.settings
    if settings is None or settings.engine == "tcw" or index.head.clock != "host":
        return ()
    return (Suggestion(id="engine tcw", words="our engine", options=("--engine", "tcw")),)


def mode(index: Index, suggestion: Suggestion) -> tuple[Suggestion, ...]:
    """A mode of torch.compile other than the current one; Inductor only."""
    settings = index.recording.settings
    if settings is None or settings.engine == "tcw" or settings.mode == suggestion.options[-1]:
        return ()
    return (suggestion,)


def override(id: str, choice: str, words: str) -> Suggestion:
    return Suggestion(
        id=f"override {id} = {choice}", words=words, options=("--override", f"{id}={choice}")
    )


def kept_apart(index: Index, row: RegionRow) -> tuple[Suggestion, ...]:
    """The opposite choice for fusions of a region's kernels; the last ones first, which join the
    largest groups."""
    kernels = [k for step in row.steps if (k := index.kernel_of(step)) is not None]
    names = {name for kernel in kernels for name in (*kernel.origins, *kernel.nodes)}
    graphs = {base_graph(kernel.graph) for kernel in kernels}
    suggestions = [
        override(id, "apart", f"{words} kept apart")
        for graph, id, members, words in index.fusions
        if base_graph(graph) in graphs and members <= names
    ]
    return tuple(dict.fromkeys(reversed(suggestions)))[:MOST]


TOGETHER = "together"
"""Id of the trial that combines everything that helped."""


def best_of_groups(trials: Sequence[Trial]) -> list[Trial]:
    """The kept trials, most helpful first, one per group: the first one tried, and so the one that
    changes least, among those that are not slower than the best beyond the noise."""
    kept = [trial for trial in trials if trial.kept and trial.id != TOGETHER]
    found = []
    for group in dict.fromkeys(trial.group or trial.id for trial in kept):
        ways = [trial for trial in kept if (trial.group or trial.id) == group]
        best = min(ways, key=lambda way: way.difference)
        close = (way for way in ways if way.difference <= best.difference + best.noise)
        found.append(next(close))
    return sorted(found, key=lambda trial: trial.difference)


def chosen(trials: Sequence[Trial]) -> Trial | None:
    """The combined trial if it was kept, else the one that helped most; None if none did."""
    together = (trial for trial in trials if trial.id == TOGETHER and trial.kept)
    return next(together, next(iter(best_of_groups(trials)), None))
