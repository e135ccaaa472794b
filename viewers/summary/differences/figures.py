"""Figures and settings of two runs, side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from msgspec import structs

from tcw.compiler.trace.records import (
    CacheLookup,
    Guards,
    Resumed,
    Run,
    Settings,
    TorchSettings,
    Waiting,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.fact_changes import FactChanges
from tcw.viewers.summary.facts import FactUnit, numbers
from tcw.viewers.summary.own_words import without_addresses, without_reprs


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
    unit: FactUnit = "count"
    not_compared: str = ""
    """Why the two cannot be compared; "" if they can."""

    @property
    def changed(self) -> bool:
        return bool(self.not_compared) or self.before != self.after


def setting_changes(one: Recording, other: Recording) -> tuple[SettingChange, ...]:
    """Settings that differ, overrides one by one, and torch settings that the files change."""
    base, run = settings_of(one), settings_of(other)
    if base is None or run is None:
        return ()
    changes = _torch_changes(one, other)
    for name in base.__struct_fields__:
        if name == "overrides":
            continue
        before, after = getattr(base, name), getattr(run, name)
        if before != after:
            words = _NAMES.get(name, name.replace("_", " "))
            changes.append(SettingChange(words, _words(before), _words(after)))
    for id in dict.fromkeys([*base.overrides, *run.overrides]):
        old, new = base.overrides.get(id, ""), run.overrides.get(id, "")
        if old != new:
            changes.append(SettingChange(id, old, new))
    return tuple(changes)


_NAMES = {"grad": "autograd"}
"""Settings whose name would be read as one of their values."""


def _torch_changes(base: Recording, run: Recording) -> list[SettingChange]:
    before, after = (
        {
            name: value
            for settings in side.all(TorchSettings)
            for name, value in settings.changed.items()
        }
        for side in (base, run)
    )
    return [
        SettingChange(name, *(without_reprs(side.get(name, "")) for side in (before, after)))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _words(value: Any) -> str:
    if value is None or value == "":
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def engines_of(*recordings: Recording) -> tuple[str, ...]:
    """The engine of each."""
    generator = (settings_of(recording) for recording in recordings)
    return tuple(settings.engine if settings else "" for settings in generator)


def figures(base: Recording, run: Recording, facts: FactChanges) -> tuple[Figure, ...]:
    """Every figure, changed or not, in the order of a compile."""
    cut = cut_elsewhere(facts)

    def why(unit: FactUnit, one: float | None, other: float | None) -> str:
        """Where graphs are cut elsewhere, bytes are those of other code: a graph that ends at a
        break seems to need less, what crosses the break or runs eagerly is in neither figure."""
        if one != other and not all(facts.complete):
            return "one side failed"
        if unit == "bytes" and cut and one != other:
            return "graphs are cut elsewhere"
        return _other_conditions(base, run, one, other) if unit == "seconds" else ""

    pairs = zip(numbers(base, facts.before), numbers(run, facts.after), strict=True)
    return tuple(
        Figure(one.name, one.value, other.value, one.unit, why(one.unit, one.value, other.value))
        for one, other in pairs
    )


def cut_elsewhere(facts: FactChanges) -> bool:
    """Whether the code is divided into other graphs, or other parts of it run eagerly."""
    return facts.before.graphs != facts.after.graphs or bool(facts.changed("break", "eager"))


def _other_conditions(
    base: Recording, run: Recording, one: float | None, other: float | None
) -> str:
    """Why times of compiling cannot be compared: the first run of the process paid for what later
    ones find done, or a cache served one of them. "" if they can."""
    if one is None or other is None:
        return ""
    runs = [found.number if (found := side.last(Run)) else 1 for side in (base, run)]
    hits = [
        sum(lookup.verdict == "hit" for lookup in part.all(CacheLookup)) for part in (base, run)
    ]
    if (runs[0] == 1) != (runs[1] == 1):
        return f"{one if runs[0] == 1 else other:.1f} s first"
    return f"{hits[0]} and {hits[1]} served by caches" if hits[0] != hits[1] else ""


def fact_counts(facts: FactChanges, group: str, alignment: Alignment) -> tuple[Figure, ...]:
    """Facts of a group that one side has more often."""
    return tuple(
        Figure(
            f"{count.fact.by}: {count.fact.title}"
            if count.line is None or count.fact.by
            else f"{alignment.words(count.line)}  {count.fact.title}",
            count.before,
            count.after,
        )
        for count in facts.counts
        if count.fact.group == group and count.before != count.after
        if all(facts.complete) or count in facts.changed(group)
    )


def guard_changes(base: Recording, run: Recording) -> tuple[Figure, ...]:
    """Guards by kind and name, over all compiles."""
    mains = [
        PurePath(settings.file).stem if (settings := settings_of(side)) else ""
        for side in (base, run)
    ]
    return _changes(_guards(base, *mains), _guards(run))


def _guards(recording: Recording, own: str = "", theirs: str = "") -> list[tuple[str, int]]:
    """The guards with `…` for memory addresses, which differ in every process, and with the other
    run's name of the main module."""
    main = re.compile(rf"^{re.escape(own)}(?=\.|$)") if own and theirs != own else None
    return [
        (f"{guard.kind}  {main.sub(theirs, name) if main else name}".rstrip(), 1)
        for record in recording.all(Guards)
        for guard in record.guards
        for name in (without_addresses(guard.name),)
    ]


def graph_changes(base: Recording, run: Recording) -> tuple[Figure, ...]:
    """Graphs by id, with their operations."""
    return _changes(
        *(
            [(graph.id, graph.ops or len(graph.nodes)) for graph in recording.graphs.values()]
            for recording in (base, run)
        )
    )


def _changes(
    before: Iterable[tuple[Hashable, int]], after: Iterable[tuple[Hashable, int]]
) -> tuple[Figure, ...]:
    one: Counter[Any] = Counter()
    other: Counter[Any] = Counter()
    for counter, found in ((one, before), (other, after)):
        for what, count in found:
            counter[what] += count
    return tuple(
        Figure(str(what), one[what], other[what])
        for what in dict.fromkeys([*one, *other])
        if one[what] != other[what]
    )


def settings_of(recording: Recording) -> Settings | None:
    """The run's settings, with the overrides chosen while it waited."""
    settings = recording.run_settings
    if settings is None:
        return None
    return structs.replace(settings, overrides={**settings.overrides, **_chosen(recording)})


def _chosen(recording: Recording) -> dict[str, str]:
    """Decision id -> the choice with which the user resumed the compile."""
    found: dict[str, str] = {}
    waits = [record for record in recording.records if isinstance(record, (Waiting, Resumed))]
    for wait, answer in pairwise(waits):
        if (
            isinstance(wait, Waiting)
            and wait.decision
            and isinstance(answer, Resumed)
            and answer.choice
        ):
            found[wait.decision] = answer.choice
    return found
