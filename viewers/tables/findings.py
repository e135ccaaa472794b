"""What a finding and a cause look like: their glyphs, lines, and what to do about them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tcw.compiler.trace.records import Advice
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role, Span
from tcw.viewers.places import FileNames
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.tables.places import place_lines


def role_of(finding: Finding) -> Role:
    return "warn" if finding.kind == "recompile" else "bad"


def glyph_of(cause: Cause) -> Span:
    """`✗` lost, `✓` won, `↻` paid in each recompile."""
    if cause.once:
        return ("↻", "warn")
    return ("✗", "bad") if cause.lost else ("✓", "good")


def finding_lines(
    finding: Finding, names: FileNames, width: int, cost: str, column: int
) -> list[TextLine]:
    """Its title and cost, the line, the fix; texts start at cell `column`."""
    role = role_of(finding)
    notes = "; " + ", ".join(finding.notes) if finding.notes else ""
    head = f"{cost}".ljust(column - 3)
    lines = [
        line((finding.glyph + "  " + head, role), (finding.title, "strong"), notes, hang=column)
    ]
    if finding.place is not None:
        lines += place_lines(finding.place, names, column, width)
    if finding.fixes:
        lines += advice_lines(finding.fixes[:1], column, width)
        lines += advice_lines(finding.also, column, width, "and  ")
    return lines


def cause_lines(cause: Cause, names: FileNames, width: int, column: int) -> list[TextLine]:
    """The lines below the title of a cause: its line, further facts, and what to do."""
    lines = place_lines(cause.place, names, column, width) if cause.place is not None else []
    lines += [line(" " * column, (note, "dim"), hang=column) for note in cause.notes]
    return [*lines, *advice_lines(cause.fixes[:2], column, width)]


def advice_lines(
    advice: Sequence[Advice], indent: int, width: int, label: str = ""
) -> list[TextLine]:
    """`fix  h = h.clamp(-8, 8)   same values without the if`; torch's own hints are marked, unless
    there is another `label`.

    Code comes first and is styled as code; prose never is.
    """
    lines = []
    for one in advice:
        mark = label or ("fix  " if one.by == "tcw" else "torch  ")
        hang = indent + cell_len(mark)
        rows = [row for row in one.code.strip().splitlines() if row.strip()]
        if len(rows) > 1:
            lines.append(line(" " * indent, (mark, "dim"), (rows[0], "good"), hang=hang + 2))
            lines += [line(" " * hang, (row, "good"), hang=hang + 2) for row in rows[1:]]
            lines += [line(" " * hang, (one.text, "dim"), hang=hang)] if one.text else []
        elif rows:
            head = line(" " * indent, (mark, "dim"), (rows[0], "good"), hang=hang)
            lines += _code_and_reason(head, one, width)
        else:
            lines.append(line(" " * indent, (mark, "dim"), one.text, hang=hang))
    return lines


def _code_and_reason(head: TextLine, advice: Advice, width: int) -> list[TextLine]:
    """The code and the reason on one line if they fit, else below each other."""
    reason = advice.text.removesuffix(".")
    if not reason:
        return [head]
    both = line(*head.spans, "   ", (reason, "dim"))
    if cell_len(both.text) <= width:
        return [both]
    return [head, line(" " * head.hang, (reason, "dim"), hang=head.hang)]
