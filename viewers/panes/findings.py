"""What needs attention, by measured cost: one entry a cause or site, with its line and its fix."""

from __future__ import annotations

from viewers.kit.cells import pad, pad_left, wrap
from viewers.kit.spans import Span, text
from viewers.panes import came_of_it
from viewers.panes.highlight import placed_code
from viewers.panes.rows import BLANK, Content, Row, text_rows
from viewers.panes.targets import ToFinding
from viewers.panes.view import View
from viewers.summary.findings import Finding
from viewers.tables.findings import advice_lines, role_of
from viewers.words import plural

COST = 9
NARROW = 100


def content(view: View, width: int) -> Content:
    rows: list[Row] = _redacted(view, width)
    narrow = width < NARROW
    for index, finding in enumerate(view.summary.findings):
        rows.extend(_finding(view, index, finding, width))
        if not narrow:
            rows.append(BLANK)
    rows.append(_rest(view, bool(view.summary.findings)))
    if not view.summary.findings and view.recording.end is not None and not view.presenting:
        rows += came_of_it.rows(view, width)
    right: tuple[Span, ...] = (("ranked by measured cost", "dim"),)
    return Content(
        "findings", right=right, rows=rows, start=str(ToFinding(view.finding)), tracks=True
    )


def _redacted(view: View, width: int) -> list[Row]:
    """What was taken out of the trace, if anything was."""
    told = [one.message for one in view.summary.warnings if one.code == "redacted"]
    return [
        Row(body=((" · " if first else "   ", "faint"), text(line, "warn")))
        for message in told
        for first, line in zip(
            (True, *[False] * len(message)), wrap(message, width - 4), strict=False
        )
    ]


def _finding(view: View, index: int, finding: Finding, width: int) -> list[Row]:
    role = role_of(finding)
    rows = [
        Row(
            body=(
                text(f" {finding.glyph}", role),
                text(pad_left(finding.cost, COST), role),
                ("  ", "text"),
                text(finding.title, "strong"),
                text("   " + " · ".join(finding.notes) if finding.notes else "", "dim"),
            ),
            selects=finding.refs[0] if finding.refs else "",
            at=ToFinding(index),
            opens=ToFinding(index),
            copies=finding.code,
        )
    ]
    place = finding.place
    indent: Span = (" " * (COST + 4), "text")
    fix = finding.fixes[0] if finding.fixes else None
    if width < NARROW:
        spans: list[Span] = [("   ", "text")]
        if place is not None:
            spans.append((pad(f":{place.line}", 6), "dim"))
        if fix is not None:
            words = fix.code.split("\n")[0] or fix.text
            spans.append(text(words, "good" if fix.code else "text"))
        return [*rows, Row(body=tuple(spans))] if place or fix else rows
    if place is not None:
        rows.append(Row(body=(indent, *placed_code(view.facts.names, place))))
    if fix is not None:
        rows += text_rows(advice_lines([fix], COST + 4, width - 1), width)
    return rows


def _rest(view: View, any_finding: bool) -> Row:
    summary = view.summary
    lead = " ·" + " " * (COST + 2)
    if any_finding:
        words = "no other finding"
    elif summary.verdict.tone == "failed":
        words = "no finding in what was recorded before"
    elif view.recording.end is None:
        words = "nothing needs attention so far" if view.live else "no finding in what was recorded"
    else:
        compiles = plural(summary.compiles, "compile")
        profile = view.facts.profile
        lost = profile is not None and any(cause.lost for cause in profile.causes)
        lead_in = "" if lost else "nothing needs attention: "
        words = f"{lead_in}no break, no recompile in {compiles}"
    return Row(body=((lead, "faint"), (words, "dim")))
