"""Functions that run eagerly as a whole because of a graph break inside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tcw.compiler.trace.records import (
    EagerShare,
    FrameSkipped,
    FrameStart,
    GraphBreak,
    Location,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import BreakSite
from tcw.viewers.summary.function_names import FunctionNames
from tcw.viewers.syntax import statements
from tcw.viewers.words import listed, percent, plural

_LOOP = "graph break in loop"


@dataclass(frozen=True)
class EagerCode:
    """One such function."""

    function: str
    why: str
    """Why torch compiles no part of it, in a phrase."""
    share: EagerShare | None
    """What it runs; None if no call was made in eager."""

    @property
    def notes(self) -> Iterator[str]:
        if self.share is not None:
            names = list(dict.fromkeys(name.split(".")[1] for name in self.share.operations))
            some = listed(names)
            part = f"{percent(self.share.share)} of the operations' time in eager"
            yield f"{plural(self.share.count, 'operation')}, {part}: {some}"
        yield self.why


def eager_code(recording: Recording, site: BreakSite) -> EagerCode | None:
    """The function that runs eagerly because of this break, if one does."""
    skipped = site.skipped
    if skipped is not None:
        return _skipped(recording, skipped)
    record = site.records[0]
    if record.outcome != "break":
        return None
    for caller, place in pairwise(record.stack):
        share = _share(recording, place.function, place)
        left = share is not None or _by_checkpoint(recording, caller)
        if left and not _considered(recording, place):
            why = f"torch compiles no part of it where line {caller.line} calls it"
            return EagerCode(place.function, why, share)
    return None


def _by_checkpoint(recording: Recording, caller: Location) -> bool:
    """Whether the line calls a function by `torch.utils.checkpoint`, which torch leaves to Python
    with all that it calls where a graph breaks inside."""
    tree = statements("\n".join(recording.source(caller.file)))
    return any(
        isinstance(node, ast.Call)
        and node.lineno <= caller.line <= (node.end_lineno or 0)
        and ast.unparse(node.func).rpartition(".")[2] == "checkpoint"
        for node in ast.walk(tree)
    )


def _skipped(recording: Recording, record: GraphBreak) -> EagerCode:
    starts = (start for start in recording.all(FrameStart) if start.compile_id == record.compile_id)
    start = next(starts, None)
    outermost = record.stack[0] if record.stack else record.location
    name, place = outermost.function, outermost
    if start is not None:
        name, place = FunctionNames(recording).of(start.compile_id, start.function), start.location
    why = "the whole function runs in Python"
    if _LOOP in record.then:
        why = f"a break in a loop: {why}"
    return EagerCode(name, why, _share(recording, outermost.function, place))


def _share(recording: Recording, function: str, place: Location) -> EagerShare | None:
    for share in recording.all(EagerShare):
        known = share.location
        if (share.function, known.file, known.line) == (function, place.file, place.line):
            return share
    return None


def _considered(recording: Recording, place: Location) -> bool:
    """Whether torch looked at the function by itself, to compile it or not."""
    records: list[FrameStart | FrameSkipped] = [*recording.all(FrameStart)]
    for record in (*records, *recording.all(FrameSkipped)):
        lines = record.location
        inside = lines.line <= place.line <= (lines.end_line or lines.line)
        if lines.file == place.file and record.function == place.function and inside:
            return True
    return False
