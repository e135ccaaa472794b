"""Figures and settings of two runs, side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from compiler.trace.records import (
    CacheLookup,
    Guards,
    MemoryPlan,
    Partition,
    Run,
    SchedulerNode,
    Settings,
)
from viewers.places import FileNames
from viewers.recording import Recording
from viewers.summary import BreakSite, Summary
from viewers.summary.differences.alignment import Alignment, MatchedLine
from viewers.summary.differences.overrides import settings_of
from viewers.summary.kernels import loop_nests
from viewers.summary.recompiles import RecompileCause

Unit = Literal["count", "bytes", "seconds", "error"]


@dataclass(frozen=True)
class SettingChange:
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Figure:
    """One number of both runs; None where a run does not have it."""

    what: str
    before: float | None
    after: float | None
    unit: Unit = "count"
    not_compared: str = ""
    """Why the two cannot be compared; "" if they can."""

    @property
    def changed(self) -> bool:
        return bool(self.not_compared) or self.before != self.after


@dataclass(frozen=True)
class CountChange:
    """Counts of one kind: breaks at a line, guards on a name, recompiles of a cause."""

    what: str
    before: int
    after: int


@dataclass(frozen=True)
class Named:
    """What is counted, equal in both runs, and how it is called."""

    key: Hashable
    words: str = field(compare=False)

    def __str__(self) -> str:
        return self.words


def setting_changes(base: Settings | None, run: Settings | None) -> tuple[SettingChange, ...]:
    """Settings that differ, overrides one by one."""
    if base is None or run is None:
        return ()
    changes = []
    for name in base.__struct_fields__:
        if name == "overrides":
            continue
        before, after = getattr(base, name), getattr(run, name)
        if before != after:
            changes.append(SettingChange(name.replace("_", " "), _words(before), _words(after)))
    for id in dict.fromkeys([*base.overrides, *run.overrides]):
        one, other = base.overrides.get(id, ""), run.overrides.get(id, "")
        if one != other:
            changes.append(SettingChange(id, one, other))
    return tuple(changes)


def _words(value: Any) -> str:
    if value is None or value == "":
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def engines_of(*recordings: Recording) -> tuple[str, ...]:
    """The engine of each."""
    found = (settings_of(recording) for recording in recordings)
    return tuple(settings.engine if settings else "" for settings in found)


def figures(base: Recording, run: Recording, before: Summary, after: Summary) -> tuple[Figure, ...]:
    """Every figure, changed or not, in the order of a compile."""
    return (
        Figure("graphs", before.graphs, after.graphs),
        Figure("graph breaks", len(before.breaks), len(after.breaks)),
        Figure("recompiles", _recompiled(before), _recompiled(after)),
        Figure("guards", before.guards, after.guards),
        Figure("scheduler nodes", _operations(base), _operations(run)),
        Figure("loop nests", _nests(base), _nests(run)),
        Figure("kernels", before.kernels.count, after.kernels.count),
        Figure("saved for backward", _saved(base), _saved(run), "bytes"),
        Figure("memory peak", _peak(base), _peak(run), "bytes"),
        _error(before, after),
        _compile(base, run, before, after),
    )


def _recompiled(summary: Summary) -> int:
    return sum(len(cause.frames) for cause in summary.recompiles)


def _real(graph: str) -> bool:
    return "@" not in graph


def _operations(recording: Recording) -> float | None:
    return sum(_real(node.graph) for node in recording.all(SchedulerNode)) or None


def _nests(recording: Recording) -> float | None:
    return loop_nests(recording.kernels.values())


def _saved(recording: Recording) -> float | None:
    sizes = [one.saved_bytes for one in recording.all(Partition)]
    return None if None in sizes or not sizes else sum(size or 0 for size in sizes)


def _peak(recording: Recording) -> float | None:
    peaks = [plan.peak_bytes for plan in recording.all(MemoryPlan) if _real(plan.graph)]
    return None if None in peaks or not peaks else max(peak or 0 for peak in peaks)


def _error(before: Summary, after: Summary) -> Figure:
    one, other = (s.numerics.max_abs if s.numerics else None for s in (before, after))
    return Figure("max error", one, other, "error")


def _compile(base: Recording, run: Recording, before: Summary, after: Summary) -> Figure:
    """CPU seconds of compiling. Not comparable if the first run of the process paid for what later
    ones find done, or if a cache served one of them."""
    one, other = (s.speed.compile_cpu_seconds if s.speed else None for s in (before, after))
    why = ""
    if one is not None and other is not None:
        numbers = [found.number if (found := r.last(Run)) else 1 for r in (base, run)]
        hits = [_hits(recording) for recording in (base, run)]
        if (numbers[0] == 1) != (numbers[1] == 1):
            why = f"{one if numbers[0] == 1 else other:.1f} s first"
        elif hits[0] != hits[1]:
            why = f"{hits[0]} and {hits[1]} served by caches"
    return Figure("compile CPU", one, other, "seconds", why)


def _hits(recording: Recording) -> int:
    return sum(one.verdict == "hit" for one in recording.all(CacheLookup))


def break_changes(
    before: Summary, after: Summary, alignment: Alignment, names: FileNames
) -> tuple[CountChange, ...]:
    """Graph breaks by site: how often each broke."""

    def key(site: BreakSite, line: MatchedLine) -> Named:
        words = f"{names.place(line.file, line.line)}  {site.title}"
        return Named((line, site.gb or site.type), words)

    return _changes(
        [
            (key(site, alignment.line(site.place.file, site.place.line)), len(site.records))
            for site in before.breaks
        ],
        [
            (key(site, MatchedLine(site.place.file, site.place.line)), len(site.records))
            for site in after.breaks
        ],
    )


def recompile_changes(before: Summary, after: Summary) -> tuple[CountChange, ...]:
    """Recompiles by cause: how many frames each recompiled."""
    return _changes(
        *(
            [(_cause(cause), len(cause.frames)) for cause in summary.recompiles]
            for summary in (before, after)
        )
    )


def _cause(cause: RecompileCause) -> str:
    return f"{cause.callers or 'a call'}: {cause.change.text}"


def guard_changes(base: Recording, run: Recording) -> tuple[CountChange, ...]:
    """Guards by kind and name, over all compiles."""
    return _changes(*(_guards(recording) for recording in (base, run)))


_OBJECT_ID = re.compile(r"0x[0-9a-f]{4,}|(?<!\d)\d{9,}(?!\d)")
"""The memory address in a name made by torch, such as `__optimizer_139837612_c0`."""


def _guards(recording: Recording) -> list[tuple[str, int]]:
    """The guards with `…` for memory addresses, which differ in every process."""
    return [
        (f"{guard.kind}  {_OBJECT_ID.sub('…', guard.name)}".rstrip(), 1)
        for record in recording.all(Guards)
        for guard in record.guards
    ]


def graph_changes(base: Recording, run: Recording) -> tuple[CountChange, ...]:
    """Graphs by id, with their operations."""
    return _changes(
        *(
            [(graph.id, graph.ops or len(graph.nodes)) for graph in recording.graphs.values()]
            for recording in (base, run)
        )
    )


def _changes(
    before: Iterable[tuple[Hashable, int]], after: Iterable[tuple[Hashable, int]]
) -> tuple[CountChange, ...]:
    one: Counter[Any] = Counter()
    other: Counter[Any] = Counter()
    for counter, found in ((one, before), (other, after)):
        for what, count in found:
            counter[what] += count
    return tuple(
        CountChange(str(what), one[what], other[what])
        for what in dict.fromkeys([*one, *other])
        if one[what] != other[what]
    )
