"""The findings of a report, in the lines that it has for them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tcw.viewers.kit.cells import cut
from tcw.viewers.kit.lines import BLANK, TextLine, fitted, line
from tcw.viewers.places import FileNames
from tcw.viewers.plain import plain
from tcw.viewers.summary.findings import Finding
from tcw.viewers.tables.findings import finding_lines, role_of
from tcw.viewers.words import plural


def findings_lines(
    findings: Sequence[Finding], names: FileNames, width: int, room: int
) -> list[TextLine]:
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
        lines.append(_short(finding, names, cost, column, width))
    if len(shown) < len(rest):
        more = rest[len(shown) :]
        sections = dict.fromkeys(
            "recompiles" if one.kind == "recompile" else "breaks" for one in more
        )
        text = f"…  {plural(len(more), 'more finding')}: --show {','.join(sections)}"
        lines.append(line((text, "dim")))
    return [BLANK, *lines] if lines else []


def _short(finding: Finding, names: FileNames, cost: str, column: int, width: int) -> TextLine:
    """One line: cost, title, place. For a long title, the folders of the place are left out; then
    the title is cut."""
    place = finding.place
    where = f"  {names.place(place.file, place.line)}" if place else ""
    head = (finding.glyph + "  " + cost).ljust(column)
    whole = plain(finding.title)
    if "/" in where and column + cell_len(whole) + cell_len(where) > width:
        where = "  …/" + where.rpartition("/")[2]
    title = cut(whole, max(8, width - column - cell_len(where)))
    return line((head, role_of(finding)), title, (where, "dim"), fixed=True)


def _cost(finding: Finding) -> str:
    """Pad a cost: seconds are right-aligned, words left-aligned."""
    return finding.cost.rjust(6) if finding.cost[:1].isdigit() else finding.cost
