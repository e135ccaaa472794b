"""`--show steps`: the instructions Dynamo interpreted, with their lines and new nodes."""

from __future__ import annotations

from compiler.trace.records import Step
from viewers.collected import grouped
from viewers.kit.lines import BLANK, TextLine
from viewers.kit.table import Cell, heading, table
from viewers.text.sections import SectionView
from viewers.words import indent, listed, plural


def section(view: SectionView) -> list[TextLine]:
    steps = view.recording.all(Step)
    if not steps:
        return [heading("steps", "not recorded: --record steps")]
    attempts = grouped(((step.compile_id, step.attempt), step) for step in steps)
    lines: list[TextLine] = []
    for (compile_id, attempt), found in attempts.items():
        title = f"steps {compile_id} attempt {attempt + 1}"
        lines.append(heading(title, plural(len(found), "instruction")))
        lines += table([_row(view, step) for step in found], "rfefl", view.width, 2)
        lines.append(BLANK)
    return lines[:-1]


def _row(view: SectionView, step: Step) -> list[Cell]:
    added = f"+ {listed(step.nodes)}" if step.nodes else ""
    where = view.names.place(step.location.file, step.location.line)
    return [
        (str(step.ip), "dim"),
        indent(step.depth) + f"{step.opcode} {step.argument}".rstrip(),
        (where, "dim"),
        (added, "good"),
        (f"{step.guards} guards", "dim"),
    ]
