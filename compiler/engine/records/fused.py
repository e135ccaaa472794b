"""Records of fusion: the tests of pairs, passes as they end, and the final groups.

Inlining is a separate decision; an inlined node is in every group that computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from tcw.compiler.engine.records.compiled import GraphState
from tcw.compiler.fusion.fuse import Fusion
from tcw.compiler.fusion.pairs import Pair
from tcw.compiler.loops.graph import Call, Reduce, Scan
from tcw.compiler.loops.nest import Nest
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.trace.byte_counts import bytes_text
from tcw.compiler.trace.records import FusionGroup, FusionGroups, FusionPair, FusionRound, Record


def take_members(compiled: GraphState, fusion: Fusion) -> None:
    """Record the operations that each nest computes."""
    for group in fusion.groups:
        compiled.members[group.nest] = compiled.operations_of(group.names)
    for step in fusion.program.steps:
        if isinstance(step, Call):
            compiled.members[step.name] = compiled.operations_of([step.name])


class FusionRecords:
    """Describes tests of pairs and records passes: a `tcw.compiler.fusion.pairs.Listener`."""

    def __init__(self, compiled: GraphState, emit: Callable[[Callable[[], Record]], None]) -> None:
        """`emit` receives a function that creates a record."""
        self._compiled = compiled
        self._emit = emit

    def tested(self, pair: Pair) -> FusionPair:
        first, second = _names(self._compiled, pair)
        return FusionPair(
            graph=self._compiled.id,
            round=pair.round,
            phase="commit",
            first=first,
            second=second,
            kind=_kind(pair),
            score=(float(pair.decision.numbers["saved_bytes"]),),
            score_text=_score_text(pair.decision),
        )

    def round(self, number: int, groups: int, fused: list[Pair]) -> None:
        self._emit(
            lambda: FusionRound(
                graph=self._compiled.id,
                round=number,
                fused=tuple(_fused(self._compiled, pair) for pair in fused),
            )
        )

    def known_as(self, nodes: Iterable[str]) -> tuple[str, ...]:
        return self._compiled.operations_of(nodes)


def groups_record(compiled: GraphState, fusion: Fusion) -> FusionGroups:
    """The nests and calls that result from fusion."""
    return FusionGroups(
        graph=compiled.id, groups=tuple(_group(compiled, step) for step in fusion.program.steps)
    )


def _kind(pair: Pair) -> Literal["vertical", "horizontal"]:
    return "vertical" if pair.kind == "vertical" else "horizontal"


def _names(compiled: GraphState, pair: Pair) -> tuple[str, str]:
    sides = (pair.first_group, pair.first), (pair.second_group, pair.second)
    first, second = ("_".join(compiled.operations_of(group)) or alone for group, alone in sides)
    return first, second


def _fused(compiled: GraphState, pair: Pair) -> tuple[str, str, str]:
    both = compiled.operations_of((*pair.first_group, *pair.second_group))
    return (*_names(compiled, pair), "_".join(both))


def _score_text(decision: Decision) -> str:
    numbers = decision.numbers
    words = f"saves {bytes_text(int(numbers['saved_bytes']))}"
    if "working_set" not in numbers or "parallelism" not in numbers:
        return words
    held, rows = numbers["working_set"], numbers["parallelism"]
    return f"{words}, holds {bytes_text(int(held))}, {rows:,} rows at once"


def _group(compiled: GraphState, step: Nest | Call) -> FusionGroup:
    operations = compiled.members.get(step.name, ())
    kind = "extern"
    if isinstance(step, Nest):
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
