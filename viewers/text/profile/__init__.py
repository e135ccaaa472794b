"""The text of `tcw profile`: the verdict and its cause, then the regions, then the causes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.cells import cell_len

from tcw.compiler.trace.records import ModeRow, Settings
from tcw.viewers.command_line import command_line
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.cells import pad
from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.figures import unit_of
from tcw.viewers.kit.lines import BLANK, TextLine, fitted, line
from tcw.viewers.kit.spans import Role, Span
from tcw.viewers.plain import plain
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.profile import Profile, profiles_of
from tcw.viewers.summary.profile.causes.cause import Cause, first_of_groups
from tcw.viewers.summary.profile.profile_verdict import doubts
from tcw.viewers.summary.profile.rows import Sort
from tcw.viewers.summary.verdict import RECOMPILED
from tcw.viewers.tables.findings import cause_lines, glyph_of
from tcw.viewers.tables.profile_lines import ceilings_lines, memory_lines
from tcw.viewers.text.explain import warning_lines
from tcw.viewers.text.header import failure_lines, title
from tcw.viewers.text.profile.results import (
    accounts_lines,
    kernels_lines,
    modes_section,
    precision_section,
    regions_table,
    trials_section,
)

_MOST_LINES = 10_000
_LEAST_CAUSES = 12
"""Lines for causes on the smallest terminal."""


def profile(
    recording: Recording,
    width: int = 100,
    height: int = 40,
    *,
    sort: Sort = "difference",
    top: int | None = None,
    trace: str = "",
) -> list[TextLine]:
    """The lines for a terminal of `width` × `height` cells.

    `sort`: order of the regions; `top`: how many of them to show, None for those that matter;
    `trace`: the file that has the recording, if it was kept.
    """
    width = max(80, min(width, 300))
    profiles = profiles_of(recording)
    if not profiles:
        return _without(recording, width)
    lines: list[TextLine] = []
    several = len(profiles) > 1
    summary = summarise(profiles[0].index.recording)
    names = summary.names
    for one in profiles:
        lines.append(first_line(one, names, one.engine if several else ""))
    lines.append(title(summary, " and ".join(one.engine for one in profiles)))
    for text in summary.missing:
        lines.append(line((text, "warn"), hang=2))
    for one in profiles:
        if several:
            lines += [BLANK, line((one.engine, "strong"))]
        lines += _one(one, names, width, height, sort, top, several)
    lines += modes_section(profiles[0].modes or _modes(recording), width)
    notes = warning_lines(summary)
    lines += [BLANK, *notes] if notes else []
    keep = f"browse it: tcw open {shlex.quote(trace)}" if trace else "keep it: --trace run.tcw"
    return [*lines, BLANK, line((keep, "dim"), hang=2)]


def first_line(one: Profile, names: FileNames, engine: str) -> TextLine:
    """`1.32x slower: block.py:21 fused attention became 2 products and a softmax`."""
    verdict = one.verdict
    where = f"{names.place(verdict.place.file, verdict.place.line)} " if verdict.place else ""
    first = one.causes[0] if one.causes else None
    join = ": "
    if first is not None and first.lost and verdict.tone != "lost":
        join = ", but "
    elif first is not None and first.once and verdict.headline != RECOMPILED:
        join = ", and "  # it does not make a call slower
    if ": " in verdict.headline:
        join = "; "  # why nothing was measured is no contrast to what was found
    pieces: list[tuple[str, Role]] = [(f"{engine}  " if engine else "", "dim")]
    pieces.append((verdict.headline, TONES[verdict.tone]))
    if verdict.cause:
        pieces += [(join, "text"), (where, "accent"), (verdict.cause, "strong")]
    return line(*pieces, hang=2)


def _one(
    one: Profile,
    names: FileNames,
    width: int,
    height: int,
    sort: Sort,
    top: int | None,
    several: bool,
) -> list[TextLine]:
    head = one.head
    unit = unit_of(head)
    call = f"call {head.call}, {head.what}, by the {head.clock}'s clock, {unit.name}"
    lines = [line(one.verdict.detail.text, (f" · {call}", "dim"), hang=2)]
    for doubt in doubts(one.index):
        lines.append(line((doubt, "warn"), hang=2))
    table = [] if head.whole_only else [BLANK, *regions_table(one, names, width, sort, top, unit)]
    lines += table
    room = max(_LEAST_CAUSES, height - len(table) - 7) if top is None else _MOST_LINES
    settings = one.index.recording.settings
    if one.causes or not head.whole_only:
        lines += causes_lines(one.causes[:top], names, width, room, settings, several)
    lines += accounts_lines(one, width, unit)
    lines += kernels_lines(one, names, width, top, unit)
    lines += [BLANK, *ceilings_lines(one.ceilings)]
    memory = memory_lines(head)
    lines += [BLANK, *memory] if memory else []
    lines += precision_section(one, width)
    lines += trials_section(one.trials)
    return lines


def _modes(recording: Recording) -> tuple[ModeRow, ...]:
    return tuple(recording.all(ModeRow))


def _without(recording: Recording, width: int) -> list[TextLine]:
    """No call was profiled: why, if the trace says so; and the modes, if they were timed."""
    part = next(iter(recording.engines.values()), recording)
    summary = summarise(part)
    names = summary.names
    rows = modes_section(_modes(recording), width)
    if summary.failure is not None:
        return [*failure_lines(part, summary, names, width), *rows]
    lines = [] if rows else [line(("No call was profiled", "bad"))]
    lines += [line((text, "warn"), hang=2) for text in summary.missing]
    return [*lines, *warning_lines(summary), title(summary), *rows]


def causes_lines(
    causes: Sequence[Cause],
    names: FileNames,
    width: int,
    room: int,
    settings: Settings | None,
    both: bool,
) -> list[TextLine]:
    """The causes in `room` lines: as many in full as fit, at least the first, and a line for each
    of the others. `settings`: of the recording, for command lines that change one thing. `both`:
    the other engine was profiled too, so it is not suggested."""
    if not causes:
        quiet = "no region differs by more than its noise, and no other cause was found"
        return [BLANK, line(("why", "accent")), line((quiet, "dim"), hang=2)]
    column = 3 + max(cell_len(cause.cost) for cause in causes) + 2
    full = [_cause_lines(cause, names, width, column, settings, both) for cause in causes]
    sizes = [len(fitted(lines, width)) for lines in full]
    whole = len(full)
    while whole > 1 and sum(sizes[:whole]) + len(full) - whole > room:
        whole -= 1
    lines = [text_line for group in full[:whole] for text_line in group]
    left = max(3, room - sum(sizes[:whole]))
    rest = causes[whole:]
    for cause in rest[:left]:
        head, role = _cause_head(cause, column)
        lines.append(line((head, role), cause.title, fixed=True))
    if len(rest) > left:
        lines.append(line((f"…  {len(rest) - left} more: --top {len(causes)}", "dim")))
    return [BLANK, line(("why", "accent")), *lines]


def _cause_lines(
    cause: Cause, names: FileNames, width: int, column: int, settings: Settings | None, both: bool
) -> list[TextLine]:
    head, role = _cause_head(cause, column)
    lines = [line((head, role), (cause.title, "strong"), hang=column)]
    lines += cause_lines(cause, names, width, column)
    for suggestion in first_of_groups(cause.suggestions):
        if (
            settings is not None
            and suggestion.options
            and not (both and "--engine" in suggestion.options)
        ):
            command = plain(command_line("profile", settings, suggestion.options))
            lines.append(line(" " * column, ("try  ", "dim"), (command, "good"), hang=column + 5))
    return lines


def _cause_head(cause: Cause, column: int) -> Span:
    glyph, role = glyph_of(cause)
    return (pad(f"{glyph}  {cause.cost}", column), role)
