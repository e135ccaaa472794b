"""Findings and causes as lines: glyphs, source lines with carets, and what to do about them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs
from rich.cells import cell_len

from tcw.compiler.trace.records import Advice, FixTrial
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.cells import cut, keep_end
from tcw.viewers.kit.highlight import highlight
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Line, Role, Span
from tcw.viewers.kit.table import Cell
from tcw.viewers.plain import plain
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.fixes import is_command, words
from tcw.viewers.summary.place import Place
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.words import listed


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
    lines += fix_lines(finding, column, width)
    if finding.consequences:
        gone = listed([consequence.title for consequence in finding.consequences])
        lines.append(line(" " * column, ("and with it: ", "dim"), gone, hang=column + 2))
    return lines


def fix_lines(finding: Finding, indent: int, width: int) -> list[TextLine]:
    """`fix ✓ …` for a fix that was tried, `idea …` for one that was not; what was tried in vain."""
    fix = finding.fix
    if fix is not None:
        shown = structs.replace(fix.advice, text=words(fix)) if fix.advice.code else fix.advice
        lines = advice_lines([shown], indent, width, "fix ✓  ", "good")
        if not fix.advice.code:
            lines.append(line(" " * indent, (words(fix), "dim"), hang=indent))
        return lines
    lines = []
    if finding.trials:
        lines.append(line(" " * indent, (f"no fix found ({len(finding.trials)} tried)", "dim")))
    lines += advice_lines(finding.fixes[:1], indent, width)
    return [*lines, *advice_lines(finding.also, indent, width, "and   ")]


def cause_lines(cause: Cause, names: FileNames, width: int, column: int) -> list[TextLine]:
    """The lines below the title of a cause: its line, further facts, and what to do."""
    lines = place_lines(cause.place, names, column, width) if cause.place is not None else []
    lines += [line(" " * column, (note, "dim"), hang=column) for note in cause.notes]
    return [*lines, *advice_lines(cause.fixes[:2], column, width)]


def advice_lines(
    advice: Sequence[Advice], indent: int, width: int, label: str = "", role: Role = "dim"
) -> list[TextLine]:
    """`idea  h = h.clamp(-8, 8)   same values without the if`; torch's own hints are marked, unless
    there is another `label`.

    Code comes first and is styled as code; prose never is.
    """
    lines = []
    for one in advice:
        mark = label or _label(one)
        hang = indent + cell_len(mark)
        rows = [row for row in one.code.strip().splitlines() if row.strip()]
        if len(rows) > 1:
            lines.append(line(" " * indent, (mark, role), (rows[0], "good"), hang=hang + 2))
            lines += [line(" " * hang, (row, "good"), hang=hang + 2) for row in rows[1:]]
            lines += [line(" " * hang, (one.text, "dim"), hang=hang)] if one.text else []
        elif rows:
            head = line(" " * indent, (mark, role), (rows[0], "good"), hang=hang)
            lines += _code_and_reason(head, one, width)
        else:
            lines.append(line(" " * indent, (mark, role), one.text, hang=hang))
    return lines


def _label(advice: Advice) -> str:
    """Of advice that was not tried; our own commands only look, they change nothing."""
    if advice.by != "tcw":
        return "torch  "
    return "look  " if is_command(advice) else "idea  "


def _code_and_reason(head: TextLine, advice: Advice, width: int) -> list[TextLine]:
    """The code and the reason on one line if they fit, else below each other."""
    reason = advice.text.removesuffix(".")
    if not reason:
        return [head]
    both = line(*head.spans, "   ", (reason, "dim"))
    if cell_len(both.text) <= width:
        return [both]
    return [head, line(" " * head.hang, (reason, "dim"), hang=head.hang)]


def shown_advice(advice: Advice, trials: Sequence[FixTrial]) -> tuple[str, Advice, Role]:
    """The label of a piece of advice, its words, and its colour: `fix ✓` if a trial shows that it
    helps, `✗` if one shows that it does not, else `idea`."""
    trial = next((trial for trial in trials if trial.advice == advice), None)
    if trial is None:
        return "idea", advice, "dim"
    if trial.kept:
        return "fix ✓", structs.replace(advice, text=words(trial)), "good"
    return "✗", structs.replace(advice, text=f"{advice.text}; {trial.reason}"), "dim"


LONG_NAME = 24
"""Cells of `file:line` from which it may get a line of its own."""


def place_lines(
    place: Place, names: FileNames, indent: int, width: int, label: str = ""
) -> list[TextLine]:
    """`block.py:26 if h.abs().max() > 8:` and, where torch gave columns, carets below it.

    A file name so long that the code would be cut gets a line of its own. `label`: the words before
    it.
    """
    lead: Cell = (" " * indent + label, "dim")
    indent += cell_len(label)
    where = plain(names.place(place.file, place.line))
    start = indent + cell_len(where) + 2
    if cell_len(plain(place.text.strip())) > width - start and cell_len(where) > LONG_NAME:
        lines, start = [line(lead, (keep_end(where, width - indent), "dim"), fixed=True)], indent
        code, first, last = window(place, max(20, width - start))
        lines.append(line(" " * indent, *_coloured(code), fixed=True))
    else:
        code, first, last = window(place, max(20, width - start))
        lines = [line(lead, (where, "dim"), "  ", *_coloured(code), fixed=True)]
    if first is not None and last is not None and last > first and code:
        carets = "^" * (last - first)
        lines.append(line(" " * (start + first), (carets, "bad"), fixed=True))
    return lines


def _coloured(code: str) -> Line:
    return highlight(code, "python")[0]


def window(place: Place, width: int) -> tuple[str, int | None, int | None]:
    """The line without its indent in at most `width` cells, and the range in it, in cells.

    If the range lies past the width, the start of the line is cut instead of its end. A range that
    covers the whole statement adds nothing and gives None.
    """
    text = place.text.rstrip()
    indent = len(text) - len(text.lstrip())
    code = plain(text[indent:])
    if place.column is None or place.end_column is None or place.column < indent:
        return cut(code, width), None, None
    first = cell_len(plain(text[indent : place.column]))
    last = min(cell_len(plain(text[indent : place.end_column])), cell_len(code))
    if first == 0 and last >= cell_len(code):
        return cut(code, width), None, None
    if last > width - 1 and first > width // 2:
        dropped = 0
        while code and dropped < first - width // 3:
            dropped += cell_len(code[0])
            code = code[1:]
        code = "…" + code
        first, last = first - dropped + 1, last - dropped + 1
    shown = cut(code, width)
    return shown, first, min(last, cell_len(shown))
