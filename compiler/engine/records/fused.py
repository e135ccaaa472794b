"""Records of fusion: the groups that it ended with, each a loop nest or a call."""

from __future__ import annotations

from compiler.engine.records.compiled import Compiled
from compiler.engine.records.kernels import computed_in
from compiler.loops.graph import Call, Reduce, Scan
from compiler.loops.nest import Nest
from compiler.loops.program import Program
from compiler.trace.records import FusionGroup, FusionGroups


def groups_record(compiled: Compiled, program: Program) -> FusionGroups:
    """In the order in which they run. An operation that was inlined is in each group that
    computes it."""
    return FusionGroups(
        graph=compiled.id,
        groups=tuple(_group(compiled, step) for step in program.steps),
    )


def _group(compiled: Compiled, step: Nest | Call) -> FusionGroup:
    if isinstance(step, Call):
        operations = compiled.operations_of([step.name])
        kind = "extern"
    else:
        operations = compiled.operations_of(computed_in(step))
        members = [compiled.operations[name] for name in operations]
        reducing = any(isinstance(member, (Reduce, Scan)) for member in members)
        kind = "reduction" if reducing else "pointwise"
    origins = step.origins() if isinstance(step, Nest) else step.origins
    return FusionGroup(
        name="_".join(operations) or step.name,
        nodes=operations,
        kind=kind,
        label=compiled.label(origins) or step.name,
    )
