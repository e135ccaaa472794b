"""`--show kernels`: every kernel and library call, with the user lines it comes from."""

from __future__ import annotations

from tcw.viewers.collected import grouped
from tcw.viewers.kit.lines import TextLine, apart, line
from tcw.viewers.kit.table import heading
from tcw.viewers.labels import binary_words
from tcw.viewers.summary.kernels import KernelRow
from tcw.viewers.summary.profile import profile_of
from tcw.viewers.tables.kernels import kernels_lines
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import plural


def section(view: SectionView) -> list[TextLine]:
    rows = view.summary.kernels.rows
    if not rows:
        return [heading("kernels", "none recorded: no graph reached code generation")]
    profile = profile_of(view.recording)
    seconds = profile.kernel_seconds if profile is not None else {}
    blocks = []
    for graph, mine in grouped((row.kernel.graph, row) for row in rows).items():
        predicted = all(row.kernel.predicted for row in mine)
        count = plural(len(mine), "kernel") + (", predicted" if predicted else "")
        found = kernels_lines(mine, view.names, view.width, 2, seconds=seconds)
        binaries = [one for row in mine for one in _binaries(row)]
        blocks.append([heading(f"kernels {graph}", count), *found, *binaries])
    untimed = line(("  times per kernel: not measured; tcw profile measures them", "dim"))
    return [*apart(blocks), *([] if seconds else [untimed])]


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
