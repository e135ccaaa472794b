"""`--show fixes`: every fix that was tried, with what it did."""

from __future__ import annotations

from rich.cells import cell_len

from tcw.compiler.trace.records import FixTrial
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.fixes import result_words, together, words
from tcw.viewers.tables.findings import place_lines
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import seconds_text


def fixes(view: SectionView) -> list[TextLine]:
    """By finding: each trial, whether it was kept, and why not."""
    lines: list[TextLine] = []
    for finding in view.summary.findings:
        lines += _of(finding, view)
        for consequence in finding.consequences:
            lines += _of(consequence, view)
    trial = together(view.recording)
    if trial is not None:
        said = f"{result_words(trial)}, {words(trial)}"
        lines.append(line(("all of them  ", "strong"), said, hang=2))
    return lines or [line(("no fix was tried", "dim"))]


def _of(finding: Finding, view: SectionView) -> list[TextLine]:
    if not finding.trials:
        return []
    lines = [line((finding.title, "strong"), hang=2)]
    if finding.place is not None:
        lines += place_lines(finding.place, view.names, 2, view.width)
    return [*lines, *(row for trial in finding.trials for row in _trial(trial, finding))]


def _trial(trial: FixTrial, finding: Finding) -> list[TextLine]:
    mark = "  ✓  " if trial.kept else "  ✗  "
    chosen = "  shown" if trial is finding.fix and len(finding.trials) > 1 else ""
    rows = (trial.advice.code or trial.advice.text).strip().splitlines()
    said = words(trial) if trial.kept else trial.reason
    took = f"{said}, in {seconds_text(trial.seconds)}{chosen}"
    role: Role = "good" if trial.kept else "dim"
    hang = cell_len(mark)
    return [
        line((mark, role), (rows[0], role), hang=hang + 2),
        *(line(" " * hang, (row, role), hang=hang + 2) for row in rows[1:]),
        line(" " * hang, (took, "dim"), hang=hang),
    ]
