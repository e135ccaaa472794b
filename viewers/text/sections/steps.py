"""`--show steps`: the instructions Dynamo interpreted, with their lines and new nodes."""

from __future__ import annotations

from tcw.compiler.trace.records import Step
from tcw.viewers.collected import grouped
from tcw.viewers.kit.lines import TextLine, apart
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import indent, listed, plural


def section(view: SectionView) -> list[TextLine]:
    steps = view.recording.all(Step)
    if not steps:
        return [heading("steps", "not recorded: --record steps")]
    attempts = grouped(((step.compile_id, step.attempt), step) for step in steps)
    return apart(
        [
            heading(f"steps {compile_id} attempt {attempt + 1}", plural(len(found), "instruction")),
            *table([_row(view, step) for step in found], "rfefl", view.width, 2),
        ]
        for (compile_id, attempt), found in attempts.items()
    )


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
