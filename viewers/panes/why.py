"""Why regions were lost or won: those of the current region first, then all by rank."""

from __future__ import annotations

import shlex
from dataclasses import replace

from rich.cells import cell_len

from tcw.viewers.command_line import command_line
from tcw.viewers.kit.cells import wrap
from tcw.viewers.kit.lines import line
from tcw.viewers.kit.spans import Line, Span
from tcw.viewers.panes import profiled
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_rows
from tcw.viewers.panes.targets import ToRegion, ToSuggestion
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.rows import SAME_CALLS_LEAST, RegionRow
from tcw.viewers.tables.findings import cause_lines, glyph_of
from tcw.viewers.tables.trials import edits_lines, outcome
from tcw.viewers.words import plural

INDENT = 3
MOST = 30
"""Causes of other regions that are listed."""
SUGGESTIONS = 4
"""Of one cause."""


def content(view: View, width: int) -> Content:
    profile = view.derived.profile
    if profile is None:
        return Content("why", rows=empty(width, *profiled.not_measured(view)))
    row = profiled.chosen(view) if view.region else None
    own = {*(region.id for region in row.regions), *row.refs} if row is not None else set()
    numbered = list(enumerate(profile.causes))
    mine = [(n, one) for n, one in numbered if own.intersection(profiled.about(one))]
    others = [(n, one) for n, one in numbered if not own.intersection(profiled.about(one))]
    rows: list[Row] = [BLANK]
    for number, cause in mine:
        rows += _cause(view, profile, number, cause, width)
    if row is not None and not mine:
        rows += _unexplained(profile, row, width)
    if others and row is not None:
        words = "the other causes" if mine else "what was found elsewhere"
        rows.append(Row(body=((f" {words}", "faint"),)))
    for number, cause in others[:MOST]:
        rows += _cause(view, profile, number, cause, width)
    if len(others) > MOST:
        words = f"{plural(len(others) - MOST, 'smaller one')}: select a region for its own"
        rows.append(Row(body=((f" {words}", "faint"),)))
    if not numbered and profile.head.contended:
        rows = empty(width, *profiled.not_measured(view))
    elif not numbered and row is None:
        differ = any(one.standing != "noise" for one in profile.rows)
        why = "for what differs" if differ else "nothing differs by more than noise"
        said = f"no cause was found{' ' if differ else ': '}{why}"
        rows += [Row(body=((f" {line}", "dim"),)) for line in wrap(said, width - 2)]
    lost = sum(cause.lost for _, cause in numbered)
    words = f"{lost} lost, {len(numbered) - lost} won" if numbered else ""
    right: Line = ((words, "dim"),) if words else ()
    start = f"reason:{mine[0][0]}" if mine else ""
    subject = plain(row.label) if row is not None else ""
    return Content("why", subject, right, rows, start, tracks=bool(start))


def _cause(view: View, profile: Profile, number: int, cause: Cause, width: int) -> list[Row]:
    key = f"reason:{number}"
    glyph, role = glyph_of(cause)
    cost = cause.cost
    fix = next((one.code for one in cause.fixes if one.code), "")
    lines = wrap(cause.title, width - INDENT - cell_len(cost) - 3)
    rows = [
        Row(
            body=((f" {glyph} ", role), (lines[0], "strong")),
            right=((cost, role), (" ", "text")),
            key=key,
            selects=cause.place.ref if cause.place is not None else "",
            opens=ToRegion(_region(profile, cause)) if cause.regions else None,
            copies=fix or _command(view, cause) or cause.title,
        )
    ]
    rows += [_indented((line, "strong")) for line in lines[1:]]
    below = text_rows(cause_lines(cause, view.derived.names, width - 1, INDENT), width)
    if cause.place is not None:
        below[0] = replace(below[0], ref=cause.place.ref)
    rows += below
    rows += _tried(profile, number, cause, width)
    return [*rows, BLANK]


def _command(view: View, cause: Cause) -> str:
    """The command that tries the first suggestion; "" if there is none."""
    settings = view.recording.settings
    options = next((one.options for one in cause.suggestions if one.options), ())
    return command_line("profile", settings, options) if settings and options else ""


def _region(profile: Profile, cause: Cause) -> str:
    row = profile.row_of(cause.regions[0])
    return row.key if row is not None else cause.regions[0]


def _indented(*spans: Span) -> Row:
    return Row(body=((" " * INDENT, "text"), *spans))


def _tried(profile: Profile, number: int, cause: Cause, width: int) -> list[Row]:
    """What tcw can try by itself (with `⏎`), or the outcome."""
    known = {one.id: one for one in profile.trials}
    rows = []
    for place, suggestion in enumerate(cause.suggestions[:SUGGESTIONS]):
        trial = known.get(suggestion.id)
        if trial is None and not suggestion.options:
            continue  # a change of the source, which is the fix above
        options = shlex.join(suggestion.options)
        said: Line = outcome(trial) if trial is not None else ((options, "dim"),)
        lines = [line(("try  ", "dim"), f"{suggestion.words}  ", *said, hang=5)]
        lines += edits_lines(trial) if trial is not None else []
        head, *more = text_rows(lines, width, indent=INDENT)
        target = ToSuggestion(number, place) if suggestion.options else None
        rows += [
            replace(head, at=target, copies=options),
            *more,
        ]
    return rows


def _unexplained(profile: Profile, row: RegionRow, width: int) -> list[Row]:
    """A region without a cause."""
    if row.standing == "noise":
        mark: Span = (" · ", "dim")
        words = "no measurable difference"
        if row.same_calls:
            words = f"both sides run the same calls: {words}, or less than {SAME_CALLS_LEAST}"
    elif row.standing == "won":
        mark = (" ✓ ", "good")
        words = (
            f"{plural(len(row.operations), 'operation')} became {plural(len(row.steps), 'step')}"
        )
    else:
        mark = (" ✗ ", "bad")
        words = "slower than eager; the trace shows no cause"
    head, *rest = wrap(words, width - INDENT - 1)
    rows = [Row(body=(mark, (head, "text")))]
    return [*rows, *(_indented((line, "text")) for line in rest), BLANK]
