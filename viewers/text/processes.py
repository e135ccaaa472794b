"""The verdict of `tcw run`: a line for each process that compiled, then what they compiled.

Processes that compiled the same are reported once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath

from tcw.compiler.trace.torch_logs.log_digests import LogDigest
from tcw.viewers.collected import grouped
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.cache_changes import follows
from tcw.viewers.summary.differences.effects import Effect, cache_effects
from tcw.viewers.summary.facts import Value, facts
from tcw.viewers.summary.own_words import are_ranks
from tcw.viewers.summary.ranks.divergence import Divergence, RankMember, first_divergence
from tcw.viewers.summary.ranks.events import events_of
from tcw.viewers.text.diff import effect_lines
from tcw.viewers.text.explain import explain
from tcw.viewers.text.ranks import ranks_lines
from tcw.viewers.words import listed, plural, seconds_text

REPORTS = 3
"""Reports at most; the traces have the others."""
ROWS = 16
"""Processes that have a row each; of more, those that compiled the same share one."""
EFFECTS = 4
"""Maximum number of differences listed of a process."""


@dataclass(frozen=True, eq=False)
class Process:
    """One process that compiled, by its trace."""

    file: Path
    recording: Recording
    running: bool = False
    """Whether it is still recording."""
    glance: LogDigest | None = None
    """Of a log that says the same as another, which `recording` was read from."""

    @property
    def rank(self) -> int | None:
        if self.glance is not None:
            return self.glance.rank
        start = self.recording.start
        return start.rank if start else None

    @property
    def name(self) -> str:
        """`rank 0` or `process 4711`."""
        start = self.recording.start
        if self.rank is not None:
            return f"rank {self.rank}"
        if self.glance is not None:
            return f"process {self.glance.pid}"
        return f"process {start.pid}" if start else self.file.stem


@dataclass(frozen=True)
class Unread:
    """A log that was looked through and not decoded: there are too many that differ."""

    file: Path
    glance: LogDigest
    compile: int | None
    """The first of its compiles that differs from the usual log's, from 1."""
    usual: Path

    @property
    def name(self) -> str:
        rank, pid = self.glance.rank, self.glance.pid
        return f"process {pid}" if rank is None else f"rank {rank}"


class Several:
    """The processes of one folder, at least one; `unread`: its logs that were not decoded."""

    def __init__(self, processes: Sequence[Process], unread: Sequence[Unread] = ()) -> None:
        self.processes = tuple(processes)
        self.unread = tuple(unread)

    @cached_property
    def summaries(self) -> dict[Process, Summary]:
        """Of each process; one for all that share a recording."""
        recordings = {id(process.recording): process.recording for process in self.processes}
        known = {id: summarise(recording) for id, recording in recordings.items()}
        return {process: known[id(process.recording)] for process in self.processes}

    @cached_property
    def groups(self) -> list[list[Process]]:
        """Processes that compiled the same, the largest group first."""
        world = len({process.rank for process in self.processes})
        several = len({id(process.recording) for process in self.processes}) > 1
        keys: dict[int, object] = {}
        for process, summary in self.summaries.items():
            if id(process.recording) not in keys:
                events = events_of(process.recording, world) if several else ()
                steps = tuple((event.kind, event.key) for event in events)
                keys[id(process.recording)] = (tuple(_facts(process, summary).items()), steps)
        alike = grouped(
            ((_program(summary), keys[id(process.recording)]), process)
            for process, summary in self.summaries.items()
        )
        return sorted(alike.values(), key=len, reverse=True)

    @property
    def usual(self) -> Process:
        """The first of those that did the same as most."""
        return self.groups[0][0]

    @cached_property
    def headline(self) -> str:
        """`2 processes compiled, all the same`."""
        number = len(self.processes) + len(self.unread)
        count = plural(number, "process")
        if number == 1:
            return f"{count} compiled"
        results = len(self.groups) + len({unread.glance.digest for unread in self.unread})
        alike = "all the same" if results == 1 else f"{results} different results"
        return f"{count} compiled, {alike}"

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """Name, program, counts, and how it ended unless that was well; of each process, or of
        each group."""
        of_each = {process: _row(process, summary) for process, summary in self.summaries.items()}
        rows = list(of_each.values())
        if len(rows) > ROWS:
            rows = [(who(members), *of_each[members[0]][1:]) for members in self.groups]
        names = {process.file: process.name for process in self.processes}
        unread = self.unread[: max(0, ROWS - len(rows))]
        return rows + [_unread_row(one, names) for one in unread]

    @property
    def unread_words(self) -> str:
        """`58 logs of 3 further results, which differ only later, were only skimmed: …`; "" if all
        were decoded."""
        if not self.unread:
            return ""
        seconds = [unread.glance.seconds for unread in self.unread]
        results = len({unread.glance.digest for unread in self.unread})
        return (
            f"{plural(len(self.unread), 'log')} of {results} further "
            "results, which differ only later, were only skimmed: "
            f"{seconds_text(min(seconds))} to {seconds_text(max(seconds))} of compiling"
        )

    @cached_property
    def ranks(self) -> list[RankMember]:
        """The ranks by number. Of several processes of a rank, the first of the program that most
        ranks run."""
        parts = min((unread.compile or 0 for unread in self.unread), default=0)
        alike = Counter(unread.usual for unread in self.unread if (unread.compile or 0) > parts)
        programs = Counter(
            program_of(process) for process in self.processes if process.rank is not None
        )
        usual = programs.most_common(1)[0][0] if programs else ""
        found: dict[int, Process] = {}
        for process in self.processes:
            if process.rank is not None and program_of(process) == usual:
                found.setdefault(process.rank, process)
        return [
            RankMember(
                rank,
                process.recording,
                complete=_ended(process.recording) and not process.running,
                alike=alike[process.file],
            )
            for rank, process in sorted(found.items())
        ]

    @cached_property
    def divergence(self) -> Divergence | None:
        """The first thing that ranks did differently."""
        return first_divergence(self.ranks) if len(self.ranks) > 1 else None

    @cached_property
    def names(self) -> FileNames:
        return self.summaries[self.processes[0]].names


def report(
    several: Several, width: int, height: int, folder: str, show: Sequence[str] = ()
) -> list[TextLine]:
    """The whole report. `folder`: where the traces are, as the user names it; `show`: sections of
    each report."""
    groups, rows = several.groups, several.rows
    lines = [line((several.headline, "strong"))]
    columns = [max(len(row[at]) for row in rows) for at in range(2)]
    for name, program, counts, ended in rows:
        row = f"  {name:<{columns[0]}}  {program:<{columns[1]}}  {counts}"
        lines.append(line(row, (f" · {ended}" if ended else "", "warn"), hang=4))
    if several.unread:
        lines.append(line((f"  {several.unread_words}", "dim"), hang=4))
    lines += ranks_lines(several.ranks, several.names, width)
    lines += _later_runs(several.processes)
    for members in groups[1:REPORTS]:
        lines += _against(groups[0][0], members)
    for members in groups[:REPORTS]:
        first = members[0]
        trace = os.path.join(folder, first.file.name)
        lines.append(BLANK)
        if len(groups) > 1:
            lines.append(line((f"{who(members)}:", "accent"), hang=2))
        lines += explain(first.recording, width, height, show, trace)
    if len(groups) > REPORTS:
        left = [member.file.name for members in groups[REPORTS:] for member in members]
        lines += [BLANK, line(f"not shown: {listed(left)}", hang=2)]
    return lines


def _later_runs(processes: Sequence[Process]) -> list[TextLine]:
    """What the caches did in a process that began after another of the same program had ended."""
    lines: list[TextLine] = []
    for process, base in _after(processes)[:EFFECTS]:
        alignment = Alignment(base.recording, process.recording)
        effects = [
            replace(each, place=alignment.words(each.line) if each.line else "")
            for each in cache_effects(alignment)
        ]
        if effects:
            title = f"{process.name}, after {base.name}"
            lines += [BLANK, line((title, "strong"), hang=2), *effect_lines(effects, EFFECTS)]
    return lines


def _after(processes: Sequence[Process]) -> list[tuple[Process, Process]]:
    """Each process that followed another of its program, and the last that it followed."""

    def began(process: Process) -> float:
        return process.recording.start.time if process.recording.start is not None else 0.0

    found = []
    for process in sorted(processes, key=began):
        before = [
            each
            for each in processes
            if program_of(each) == program_of(process)
            and each.recording is not process.recording
            and not are_ranks(each.recording, process.recording)
            and follows(each.recording, process.recording)
        ]
        if before:
            found.append((process, max(before, key=began)))
    return found


def _ended(recording: Recording) -> bool:
    """Whether its recording is complete."""
    return recording.end is not None and recording.end.status != "incomplete"


def program_of(process: Process) -> str:
    """The file that the process ran."""
    settings = process.recording.settings
    return settings.file if settings is not None else ""


def _against(usual: Process, members: Sequence[Process]) -> list[TextLine]:
    """What these processes did differently from the largest group."""
    found, others = otherwise(usual, members[0])
    lines = effect_lines(found, EFFECTS) or [line(f"· {other}", hang=2) for other in others]
    if not lines:  # the first difference has told it
        return []
    title = f"{who(members)} against {usual.name}"
    return [BLANK, line((title, "strong"), hang=2), *lines]


def otherwise(usual: Process, process: Process) -> tuple[tuple[Effect, ...], list[str]]:
    """What a process did differently from the usual ones; differing facts if no effect differs."""
    effects = difference(usual.recording, process.recording).effects
    pair = (usual.recording, process.recording)
    if follows(*pair) or follows(*reversed(pair)):  # cache lookups: in the order of the runs
        effects = tuple(each for each in effects if each.kind != "cache")
    if effects:
        return effects, []
    old, new = (_facts(each, summarise(each.recording)) for each in (usual, process))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return (), [
        f"{' '.join(filter(None, name))} "
        + " → ".join(str(side.get(name, "none")) for side in (old, new))
        for name in names[:EFFECTS]
    ]


def who(members: Sequence[Process]) -> str:
    """`rank 0, rank 2`."""
    return listed([member.name for member in members])


def _facts(process: Process, summary: Summary) -> dict[tuple[str, str], Value]:
    """What it compiled to, without times."""
    return {
        fact.key: fact.value
        for fact in facts(process.recording, summary)
        if fact.unit in ("count", "bytes")
    }


def _unread_row(unread: Unread, names: Mapping[Path, str]) -> tuple[str, str, str, str]:
    counts = (
        f"{plural(len(unread.glance.starts), 'compile')}, "
        f"{seconds_text(unread.glance.seconds)} of compiling"
    )
    differs = (
        f"differs from {names[unread.usual]} in compile {unread.compile}" if unread.compile else ""
    )
    return unread.name, "", counts, differs


def _row(process: Process, summary: Summary) -> tuple[str, str, str, str]:
    """Name, program, counts, and how it ended unless that was well."""
    ended = ""
    if process.running:
        ended = "still running"
    elif not _ended(process.recording):
        ended = "killed, or cut off"
    elif summary.failure is not None:
        ended = summary.failure.type
    return process.name, _program(summary), counts_of(process, summary), ended


def counts_of(process: Process, summary: Summary) -> str:
    """`1 graph, no breaks, 1 recompile, 8 kernels, 2.5 s of compiling`."""
    recompiles = sum(len(cause.frames) for cause in summary.recompiles)
    seconds = sum(stage.seconds for stage in summary.stages)
    if process.glance is not None and process.recording.file != process.file:
        seconds = process.glance.seconds
    parts = [
        plural(summary.graphs, "graph"),
        plural(len(summary.breaks), "break"),
        plural(recompiles, "recompile"),
        plural(summary.kernels.count, "kernel"),
        f"{seconds_text(seconds)} of compiling",
    ]
    return ", ".join(parts)


def _program(summary: Summary) -> str:
    """`train.py`; the package's name for `-m package`."""
    path = PurePath(summary.settings.file if summary.settings else "")
    return path.parent.name if path.name == "__main__.py" else path.name


def in_order(processes: Iterable[Process]) -> list[Process]:
    """By rank, then by start."""

    def key(process: Process) -> tuple[float, float]:
        start = process.recording.start
        return (
            process.rank if process.rank is not None else float("inf"),
            start.time if start else 0.0,
        )

    return sorted(processes, key=key)
