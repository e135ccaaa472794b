"""The object of `tcw explain FOLDER --json`: several processes of one program (docs/json.md)."""

from __future__ import annotations

import msgspec

from tcw.viewers.json_report import Report, report
from tcw.viewers.json_text import JsonItem, placed
from tcw.viewers.summary.ranks.divergence import Divergence
from tcw.viewers.summary.ranks.events import Kind
from tcw.viewers.text.processes import Several, program_of

VERSION = 1


class ProcessItem(JsonItem):
    """One process that compiled."""

    name: str
    """`rank 0` or `process 4711`."""
    rank: int | None
    pid: int | None
    file: str
    """Its trace or log, in the folder."""
    program: str
    running: bool
    """Whether it is still recorded."""
    same_as: str
    """The name of an earlier process whose log says the same, and whose `report` holds here; "" if
    there is none."""
    differs_in: int | None
    """Of a log that was not decoded, since many differ: the first of its compiles, from 1, that
    is unlike the usual log's; null for a log that was decoded."""
    compile_seconds: float | None = msgspec.field(name="compile_s")
    """Of a log: of all its compiles; null for a trace, whose phases have it."""
    report: Report | None
    """The object of `tcw explain FILE --json`; null if another process has it, or if the log was
    not decoded."""


class SideItem(JsonItem):
    """What some ranks did."""

    ranks: list[int]
    words: str
    file: str
    line: int | None


class WaitItem(JsonItem):
    """A collective operation in which ranks wait because of the difference."""

    ranks: list[int]
    words: str
    because: str
    file: str
    line: int | None


class DifferenceItem(JsonItem):
    """The first thing that ranks did differently."""

    kind: Kind
    compile_id: str
    function: str
    file: str
    line: int | None
    sides: list[SideItem]
    """The one that is reported first comes first."""
    because: str
    """The condition of the source that decides it, or the cause in words; "" if neither is
    known."""
    fix: str
    waits: list[WaitItem]


class FolderReport(JsonItem):
    """The whole object."""

    version: int
    processes: list[ProcessItem]
    first_difference: DifferenceItem | None
    """null if the ranks did the same as far as they were recorded and decoded, or if there are not
    several."""


def folder_report(several: Several) -> FolderReport:
    items = []
    first: dict[int, str] = {}
    for process in several.processes:
        same = first.get(id(process.recording), "")
        first.setdefault(id(process.recording), process.name)
        start = process.recording.start
        items.append(
            ProcessItem.of(
                process,
                pid=process.glance.pid
                if process.glance is not None
                else start.pid
                if start
                else None,
                file=process.file.name,
                program=program_of(process),
                same_as=same,
                differs_in=None,
                compile_seconds=process.glance.seconds if process.glance is not None else None,
                report=None if same else report(process.recording),
            )
        )
    items += [
        ProcessItem.of(
            log.glance,
            name=log.name,
            file=log.file.name,
            program="",
            running=False,
            same_as="",
            differs_in=log.compile,
            compile_seconds=log.glance.seconds,
            report=None,
        )
        for log in several.unread
    ]
    divergence = several.divergence
    difference = _difference(divergence) if divergence is not None else None
    return FolderReport(version=VERSION, processes=items, first_difference=difference)


def _difference(found: Divergence) -> DifferenceItem:
    first = found.sides[found.subject]
    sides = [first, *(side for side in found.sides if side is not first)]
    condition = found.condition.text.strip() if found.condition is not None else ""
    return DifferenceItem.of(
        found,
        sides=[SideItem.of(side, **placed(side.place)) for side in sides],
        because=condition or found.why,
        waits=[WaitItem.of(wait, **placed(wait.place)) for wait in found.waits],
        **placed(found.place),
    )
