"""`--show kernels`: every kernel and library call, with the user lines it comes from."""

from __future__ import annotations

from viewers.kit.lines import BLANK, TextLine, line
from viewers.kit.table import Cell, heading, table
from viewers.labels import WRITTEN_IN, binary_words, kernel_label
from viewers.places import FileNames
from viewers.summary import KernelRow
from viewers.text.sections import SectionView
from viewers.words import plural


def section(view: SectionView) -> list[TextLine]:
    rows = view.summary.kernels.rows
    if not rows:
        return [heading("kernels", "none recorded: no graph reached code generation")]
    lines: list[TextLine] = []
    for graph in dict.fromkeys(row.kernel.graph for row in rows):
        mine = [row for row in rows if row.kernel.graph == graph]
        predicted = all(row.kernel.predicted for row in mine)
        count = plural(len(mine), "kernel") + (", predicted" if predicted else "")
        lines.append(heading(f"kernels {graph}", count))
        shown = [_row(row, view.names, mark=not predicted) for row in mine]
        lines += table(shown, "llfrrf", view.width, 2)
        for row in mine:
            lines += _binaries(row)
        lines.append(BLANK)
    return [*lines[:-1], line(("  times per kernel: not measured", "dim"))]


def _row(row: KernelRow, names: FileNames, mark: bool) -> list[Cell]:
    kernel = row.kernel
    language = WRITTEN_IN.get(kernel.language, kernel.language)
    nests = plural(kernel.loop_nests, "loop nest") if kernel.loop_nests else ""
    length = plural(row.text_lines, "line") if row.text_lines else ""
    where = names.lines(row.lines) or f"no user line: {kernel.no_line or 'not recorded'}"
    return [
        (kernel.id, "accent"),
        (language + (" predicted" if kernel.predicted and mark else ""), "dim"),
        kernel_label(kernel),
        (nests, "dim"),
        (length, "dim"),
        where,
    ]


def _binaries(row: KernelRow) -> list[TextLine]:
    lines = []
    for binary in row.binaries:
        head = f"    {row.kernel.id} {binary.arch}  "
        if binary.error:
            lines.append(line((head, "dim"), ("not compiled: ", "bad"), binary.error, hang=8))
            continue
        facts = [binary.configuration, *binary_words(binary)]
        lines.append(line((head, "dim"), " · ".join(fact for fact in facts if fact), hang=8))
    return lines
