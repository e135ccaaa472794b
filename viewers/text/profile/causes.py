"""Why: each cause with its seconds, its line and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tcw.compiler.trace.records import Settings
from tcw.viewers.command_line import command_line
from tcw.viewers.kit.cells import pad
from tcw.viewers.kit.lines import BLANK, TextLine, fitted, line
from tcw.viewers.kit.spans import Span
from tcw.viewers.places import FileNames
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile.causes.cause import Cause, first_of_groups
from tcw.viewers.tables.findings import cause_lines, glyph_of


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
    full = [_cause(cause, names, width, column, settings, both) for cause in causes]
    sizes = [len(fitted(lines, width)) for lines in full]
    whole = len(full)
    while whole > 1 and sum(sizes[:whole]) + len(full) - whole > room:
        whole -= 1
    lines = [one for group in full[:whole] for one in group]
    left = max(3, room - sum(sizes[:whole]))
    rest = causes[whole:]
    for cause in rest[:left]:
        head, role = _head(cause, column)
        lines.append(line((head, role), cause.title, fixed=True))
    if len(rest) > left:
        lines.append(line((f"…  {len(rest) - left} more: --top {len(causes)}", "dim")))
    return [BLANK, line(("why", "accent")), *lines]


def _cause(
    cause: Cause, names: FileNames, width: int, column: int, settings: Settings | None, both: bool
) -> list[TextLine]:
    head, role = _head(cause, column)
    lines = [line((head, role), (cause.title, "strong"), hang=column)]
    lines += cause_lines(cause, names, width, column)
    for one in first_of_groups(cause.suggestions):
        if settings is not None and one.options and not (both and "--engine" in one.options):
            command = plain(command_line("profile", settings, one.options))
            lines.append(line(" " * column, ("try  ", "dim"), (command, "good"), hang=column + 5))
    return lines


def _head(cause: Cause, column: int) -> Span:
    glyph, role = glyph_of(cause)
    return (pad(f"{glyph}  {cause.cost}", column), role)
