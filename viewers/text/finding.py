"""One finding: its cost, what it is, the line, the fix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from compiler.trace.records import Advice
from viewers.places import FileNames
from viewers.summary import Finding
from viewers.text.code import place_lines
from viewers.text.lines import BLANK, Line, Role, line

ROLES: dict[str, Role] = {
    "numerics": "lost",
    "fallback": "lost",
    "recompile": "recompile",
    "break": "lost",
}


def findings_lines(findings: Sequence[Finding], names: FileNames, width: int) -> list[Line]:
    """All findings, a blank line before the first; costs in one column."""
    costs = [_cost(finding) for finding in findings]
    column = 3 + max([8, *map(len, costs)]) + 2
    lines = [BLANK] if findings else []
    for finding, cost in zip(findings, costs, strict=True):
        lines += finding_lines(finding, names, width, cost, column)
    return lines


def _cost(finding: Finding) -> str:
    """Seconds end in one column; words start in it."""
    return finding.cost.rjust(6) if finding.kind == "recompile" else finding.cost


def finding_lines(
    finding: Finding, names: FileNames, width: int, cost: str, column: int
) -> list[Line]:
    """The lines of one finding, its texts from cell `column` on."""
    role = ROLES[finding.kind]
    notes = "; " + ", ".join(finding.notes) if finding.notes else ""
    head = f"{cost}".ljust(column - 3)
    lines = [
        line(
            (finding.glyph + "  " + head, role),
            (finding.title, "strong"),
            (notes, ""),
            hang=column,
        )
    ]
    if finding.place is not None:
        lines += place_lines(finding.place, names, column, width)
    if finding.fixes:
        lines += advice_lines(finding.fixes[:1], column, width)
    return lines


def advice_lines(advice: Sequence[Advice], indent: int, width: int) -> list[Line]:
    """`fix  h = h.clamp(-8, 8)   same values without the if`; torch's own hints say so."""
    lines = []
    for one in advice:
        label = "fix  " if one.by == "tcw" else "torch  "
        hang = indent + cell_len(label)
        code = one.code.strip()
        if "\n" in code:
            lines.append(line(" " * indent, (label, "dim"), (one.text, ""), hang=hang))
            lines += [
                line(" " * hang, (row, "won"), fixed=True) for row in code.splitlines() if row
            ]
        elif code:
            head = line(" " * indent, (label, "dim"), (code, "won"), hang=hang)
            lines += _code_and_reason(head, one, width)
        else:
            role: Role = "won" if one.by == "tcw" else ""
            lines.append(line(" " * indent, (label, "dim"), (one.text, role), hang=hang))
    return lines


def _code_and_reason(head: Line, advice: Advice, width: int) -> list[Line]:
    """On one line where they fit, else the reason below the code."""
    reason = advice.text.removesuffix(".")
    if not reason:
        return [head]
    both = line(*((span.text, span.role) for span in head.spans), "   ", (reason, "dim"))
    if cell_len(both.text) <= width:
        return [both]
    return [head, line(" " * head.hang, (reason, "dim"), hang=head.hang)]
