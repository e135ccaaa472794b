"""One finding: its cost, what it is, the line, the fix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from compiler.trace.records import Advice
from viewers.kit.lines import BLANK, Line, fitted, line
from viewers.kit.spans import Role
from viewers.places import FileNames
from viewers.summary import Finding
from viewers.text.code import place_lines
from viewers.words import plural

ROLES: dict[str, Role] = {
    "numerics": "bad",
    "fallback": "bad",
    "recompile": "warn",
    "break": "bad",
    "slower": "bad",
    "cudagraph": "bad",
}


def findings_lines(
    findings: Sequence[Finding], names: FileNames, width: int, room: int
) -> list[Line]:
    """The findings in at most `room` lines: the costliest in full, as many as fit, the others on
    one line each, then a count of the rest."""
    costs = [_cost(finding) for finding in findings]
    column = 3 + max([8, *map(len, costs)]) + 2
    full = [
        finding_lines(finding, names, width, cost, column)
        for finding, cost in zip(findings, costs, strict=True)
    ]
    sizes = [len(fitted(lines, width)) for lines in full]
    whole = len(full)
    while whole > 1 and sum(sizes[:whole]) + len(full) - whole > room:
        whole -= 1
    lines = [one for lines in full[:whole] for one in lines]
    left = max(1, room - sum(sizes[:whole]))
    rest = findings[whole:]
    shown = rest if len(rest) <= left else rest[: left - 1]
    for finding, cost in zip(shown, costs[whole:], strict=False):
        lines.append(_short(finding, names, cost, column))
    if len(shown) < len(rest):
        more = rest[len(shown) :]
        sections = dict.fromkeys(
            "recompiles" if one.kind == "recompile" else "breaks" for one in more
        )
        text = f"…  {plural(len(more), 'more finding')}: --show {','.join(sections)}"
        lines.append(line((text, "dim")))
    return [BLANK, *lines] if lines else []


def _short(finding: Finding, names: FileNames, cost: str, column: int) -> Line:
    """One line: cost, title, place."""
    place = finding.place
    where = f"  {names.place(place.file, place.line)}" if place else ""
    head = (finding.glyph + "  " + cost).ljust(column)
    return line((head, ROLES[finding.kind]), finding.title, (where, "dim"), fixed=True)


def _cost(finding: Finding) -> str:
    """Pad a cost: seconds are right-aligned, words left-aligned."""
    return finding.cost.rjust(6) if finding.kind == "recompile" else finding.cost


def finding_lines(
    finding: Finding, names: FileNames, width: int, cost: str, column: int
) -> list[Line]:
    """The lines of one finding; its texts start at cell `column`."""
    role = ROLES[finding.kind]
    notes = "; " + ", ".join(finding.notes) if finding.notes else ""
    head = f"{cost}".ljust(column - 3)
    lines = [
        line(
            (finding.glyph + "  " + head, role),
            (finding.title, "strong"),
            notes,
            hang=column,
        )
    ]
    if finding.place is not None:
        lines += place_lines(finding.place, names, column, width)
    if finding.fixes:
        lines += advice_lines(finding.fixes[:1], column, width)
    return lines


def advice_lines(advice: Sequence[Advice], indent: int, width: int) -> list[Line]:
    """`fix  h = h.clamp(-8, 8)   same values without the if`; torch's own hints are marked.

    Code comes first and is styled as code; prose never is.
    """
    lines = []
    for one in advice:
        label = "fix  " if one.by == "tcw" else "torch  "
        hang = indent + cell_len(label)
        rows = [row for row in one.code.strip().splitlines() if row.strip()]
        if len(rows) > 1:
            lines.append(line(" " * indent, (label, "dim"), (rows[0], "good"), fixed=True))
            lines += [line(" " * hang, (row, "good"), fixed=True) for row in rows[1:]]
            lines += [line(" " * hang, (one.text, "dim"), hang=hang)] if one.text else []
        elif rows:
            head = line(" " * indent, (label, "dim"), (rows[0], "good"), hang=hang)
            lines += _code_and_reason(head, one, width)
        else:
            lines.append(line(" " * indent, (label, "dim"), one.text, hang=hang))
    return lines


def _code_and_reason(head: Line, advice: Advice, width: int) -> list[Line]:
    """On one line if they fit, else the reason below the code."""
    reason = advice.text.removesuffix(".")
    if not reason:
        return [head]
    both = line(*head.spans, "   ", (reason, "dim"))
    if cell_len(both.text) <= width:
        return [both]
    return [head, line(" " * head.hang, (reason, "dim"), hang=head.hang)]
