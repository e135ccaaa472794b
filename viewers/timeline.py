"""A trace in time: its segments, what happened where, and where a reader can stop.

Fed as the trace grows, so a timeline of a million records costs only what is drawn of it. Places
are indexes into the records of the whole trace, from 0.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tcw.compiler.trace.records import (
    AnyRecord,
    Bytecode,
    CacheLookup,
    CallEnd,
    CallStart,
    Decided,
    End,
    EnginePart,
    Environment,
    FrameEnd,
    FrameStart,
    Graph,
    GraphBreak,
    Guards,
    Kernel,
    Lowered,
    MemoryPlan,
    Note,
    Partition,
    PassChange,
    Phase,
    Progress,
    Recompile,
    Record,
    Refused,
    Resumed,
    Run,
    SchedulerNode,
    Source,
    StageStart,
    Step,
    Text,
    Waiting,
    Wrapper,
)
from tcw.viewers.recording import RecordedDecisions, Recording

Mark = Literal["break", "recompile", "breakpoint", "override", "note"]

QUIET: tuple[type[Record], ...] = (
    Step, Bytecode, Text, Waiting, Resumed, Refused, Progress, StageStart, Note,
)  # fmt: skip
"""Records that no summary of a recording uses."""

_UNSEEN: tuple[type[Record], ...] = (
    Text, Source, Bytecode, Phase, Progress, EnginePart, Environment, Resumed, StageStart,
)  # fmt: skip
"""Records without anything of their own to show: scrubbing skips them."""

_STAGE_OF: dict[type[Record], str] = {
    CallStart: "call", FrameStart: "capture", Step: "capture", GraphBreak: "capture",
    Guards: "guards", Partition: "autograd", PassChange: "passes", Lowered: "lowering",
    SchedulerNode: "fusion", MemoryPlan: "memory", Kernel: "kernels", Wrapper: "kernels",
    CacheLookup: "caches", FrameEnd: "call", CallEnd: "call", End: "end", Run: "run",
}  # fmt: skip


@dataclass
class CompileAttempt:
    """One attempt at one compile, up to the next."""

    run: int
    compile_id: str
    """"" for what comes before the first compile of a run."""
    attempt: int
    name: str
    """`forward`, `→24` for a function that resumes at line 24."""
    first: int
    """Index of its first record."""
    last: int
    """Index of its last record."""
    began: float = 0.0
    ended: float = 0.0
    waited: float = 0.0
    """Seconds that the user took in it."""
    marks: list[tuple[int, Mark]] = field(default_factory=list)

    @property
    def resumes(self) -> bool:
        """Whether it compiles the rest of a function."""
        return self.name.startswith("→")

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended - self.began - self.waited)


_MARKED = frozenset((FrameStart, Run, Waiting, Resumed, Decided, Recompile, GraphBreak, Note))
"""The kinds that `Track` examines."""


class Track:
    """The timeline of a whole trace."""

    def __init__(self, records: Iterable[AnyRecord] = ()) -> None:
        self.count = 0
        self.segments: list[CompileAttempt] = []
        self.loud: list[int] = []
        """Where a record changes a summary."""
        self.seen: list[int] = []
        """Where scrubbing stops."""
        self.stages: list[int] = []
        """Where a stage, a compile or a run begins."""
        self.stage_names: list[str] = []
        self.waits: list[int] = []
        self.moves: list[int] = []
        """Where the compile continued after a wait, or a new run started."""
        self.runs: list[tuple[int, int]] = []
        """(index, number) of each run."""
        self._waiting: list[Waiting] = []
        self._asked: dict[str, Decided] = {}
        self._decision = ""
        self._decided: dict[tuple[int, str], int] = {}
        self._overridden: set[tuple[int, str]] = set()
        self._stage = ""
        self.feed(records)

    def feed(self, records: Iterable[AnyRecord]) -> None:
        for record in records:
            kind = type(record)
            index = self.count
            self.count += 1
            asks = isinstance(record, Decided) and record.open
            if kind not in QUIET and not asks:
                self.loud.append(index)
            if kind not in _UNSEEN and not asks:
                self.seen.append(index)
            stage = _STAGE_OF.get(kind, "")
            if isinstance(record, StageStart):
                stage = record.stage
            elif isinstance(record, Graph):
                stage = "capture" if record.kind == "captured" else "autograd"
            if stage and stage != self._stage:
                self._begin_stage(index, stage)
            if kind in _MARKED:
                self._mark(index, record)
            if self.segments:
                segment = self.segments[-1]
                segment.last = index
                segment.ended = max(segment.ended, record.at)

    def _begin_stage(self, index: int, stage: str) -> None:
        self._stage = stage
        self.stages.append(index)
        self.stage_names.append(stage)

    def _mark(self, index: int, record: AnyRecord) -> None:
        if isinstance(record, FrameStart):
            self._begin(index, record)
        elif isinstance(record, Run):
            self.runs.append((index, record.number))
            self.moves.append(index)
            self.segments.append(
                CompileAttempt(record.number, "", 0, "", index, index, record.at, record.at)
            )
        elif isinstance(record, Waiting):
            self.waits.append(index)
            self._waiting.append(record)
            self._decision = record.decision
            if record.breakpoint:
                self._put(index, "breakpoint")
        elif isinstance(record, Resumed):
            self.moves.append(index)
            if self.segments:
                self.segments[-1].waited += record.seconds
            asked = self._asked.get(self._decision)
            if record.choice and asked is not None and record.choice != asked.default:
                self._override(index, asked.id)
        elif isinstance(record, Decided):
            if record.open:
                self._asked[record.id] = record
            self._decided.setdefault((self.run, record.id), index)
            if record.overridden:
                self._override(index, record.by or record.id)
        elif isinstance(record, Recompile):
            segment = CompileAttempt(
                self.run, record.compile_id, 0, "", index, index, record.at, record.at
            )
            segment.marks.append((index, "recompile"))
            self.segments.append(segment)
        elif isinstance(record, GraphBreak):
            self._put(index, "break")
        elif isinstance(record, Note) and record.text:
            thing = record.on.removeprefix("decision:")
            self._put(self._decided.get((record.run or self.run, thing), index), "note")

    def _begin(self, index: int, frame: FrameStart) -> None:
        name = f"→{frame.resumes_at}" if frame.resumes_at else frame.called
        before = self.segments[-1] if self.segments else None
        if before is not None and before.run == self.run and not before.name:
            if before.compile_id == frame.compile_id:
                before.name = name
                return
            if not before.compile_id:
                self.segments.pop()
        segment = CompileAttempt(
            self.run, frame.compile_id, frame.attempt, name, index, index, frame.at, frame.at
        )
        if not frame.attempt and not frame.compile_id.endswith("/0"):
            segment.marks.append((index, "recompile"))
        self.segments.append(segment)
        if self.stages and self.stages[-1] != index:
            self._begin_stage(index, "capture")

    def _override(self, index: int, id: str) -> None:
        if (self.run, id) not in self._overridden:
            self._overridden.add((self.run, id))
            self._put(index, "override")

    def _put(self, index: int, mark: Mark) -> None:
        if not self.segments:
            return
        at = bisect_right([segment.first for segment in self.segments], index) - 1
        self.segments[max(0, at)].marks.append((index, mark))

    @property
    def run(self) -> int:
        """The last run; 0 if the trace has none."""
        return self.runs[-1][1] if self.runs else 0

    def run_at(self, position: int) -> int:
        """The run that the first `position` records end in."""
        found = bisect_left(self.runs, (position, 0))
        return self.runs[found - 1][1] if found else 0

    def waiting(self, position: int) -> Waiting | None:
        """Where the compile was waiting after the first `position` records, if it was."""
        found = bisect_left(self.waits, position)
        if not found:
            return None
        moved = bisect_left(self.moves, position)
        if moved and self.moves[moved - 1] > self.waits[found - 1]:
            return None
        return self._waiting[found - 1]

    def changes(self, first: int, last: int) -> bool:
        """Whether a summary of the first `first` records differs from one of the first `last`."""
        low, high = min(first, last), max(first, last)
        return bisect_left(self.loud, low) < bisect_left(self.loud, high)

    def next_seen(self, position: int, by: int) -> int:
        """The next place (a count of records) at which scrubbing stops."""
        return _next(self.seen, position, by, self.count)

    def next_stage(self, position: int, by: int) -> int:
        return _next(self.stages, position, by, self.count)

    def stage_at(self, position: int) -> str:
        found = bisect_left(self.stages, position)
        return self.stage_names[found - 1] if found else ""

    def segment_at(self, position: int) -> CompileAttempt | None:
        """The segment that holds the last of the first `position` records."""
        firsts = [segment.first for segment in self.segments]
        found = bisect_left(firsts, position)
        return self.segments[found - 1] if found else None


def _next(places: list[int], position: int, by: int, count: int) -> int:
    if by > 0:
        found = bisect_left(places, position)
        return places[found] + 1 if found < len(places) else count
    found = bisect_left(places, position - 1)
    return places[found - 1] + 1 if found else min(1, count)


CHECKPOINTS = 24
"""Maximum number of checkpoints of a trace."""
LEAST = 2000
"""Minimum number of records between two."""


class Playhead:
    """Returns a recording as of any number of its records."""

    def __init__(self, whole: Recording) -> None:
        self.whole = whole
        self._checkpoints: dict[int, Recording] = {}
        self._here = Recording(losses=whole.losses, file=whole.file)
        self._position = 0

    def at(self, position: int) -> Recording:
        """The first `position` records. Later calls feed the returned recording or discard it."""
        position = max(0, min(position, len(self.whole.records)))
        if position < self._position:
            self._back(position)
        every = max(LEAST, len(self.whole.records) // CHECKPOINTS)
        while self._position < position:
            until = min(position, (self._position // every + 1) * every)
            self._here.feed(self.whole.records[self._position : until])
            self._position = until
            if until % every == 0 and until not in self._checkpoints:
                self._checkpoints[until] = fork(self._here)
        self._here.losses = self.whole.losses
        return self._here

    def _back(self, position: int) -> None:
        if len(self._checkpoints) > 2 * CHECKPOINTS:  # they were set while the trace was shorter
            kept = sorted(self._checkpoints)[::2]
            self._checkpoints = {place: self._checkpoints[place] for place in kept}
        found = max((place for place in self._checkpoints if place <= position), default=0)
        self._here = fork(self._checkpoints[found]) if found else Recording(file=self.whole.file)
        self._position = found


def fork(recording: Recording, known: dict[int, Any] | None = None) -> Recording:
    """A recording with the same records that grows independently, and so do its parts. What parts
    share, they still share."""
    known = {} if known is None else known
    if id(recording) not in known:
        copy = known[id(recording)] = Recording.__new__(Recording)
        for name, value in vars(recording).items():
            setattr(copy, name, _copied(value, known))
    found: Recording = known[id(recording)]
    return found


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, Recording):
        return fork(value, known)
    if isinstance(value, RecordedDecisions):
        return RecordedDecisions()  # it reads the records again when it is asked
    if isinstance(value, (dict, list)):
        if id(value) not in known:
            known[id(value)] = _copy_of(value, known)
        return known[id(value)]
    return value


def _copy_of(value: dict[Any, Any] | list[Any], known: dict[int, Any]) -> Any:
    if isinstance(value, defaultdict):
        found: defaultdict[Any, Any] = defaultdict(value.default_factory)
        found.update((key, _copied(inner, known)) for key, inner in value.items())
        return found
    if isinstance(value, dict):
        first = next(iter(value.values()), None)
        if isinstance(first, (Recording, list)):
            return {key: _copied(inner, known) for key, inner in value.items()}
        return dict(value)
    return list(value)
