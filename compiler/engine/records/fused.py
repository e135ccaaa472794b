"""Records of fusion: the pairs that were considered, the rounds, and the groups that it ended with.

Inlining is a decision of its own (`Decided`); what was inlined is in every group that computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from compiler.engine.records.compiled import Compiled
from compiler.fusion.decide import Pair
from compiler.fusion.fuse import Fusion
from compiler.loops.graph import Call, Reduce, Scan
from compiler.loops.nest import Nest, Write
from compiler.trace.records import FusionGroup, FusionGroups, FusionPair, FusionRound, Record


def take_members(compiled: Compiled, fusion: Fusion) -> None:
    """Keep which operations each nest carries out."""
    groups = {member.name: group for group in fusion.groups for member in group.members}
    for step in fusion.program.steps:
        if isinstance(step, Call):
            compiled.members[step.name] = compiled.operations_of([step.name])
            continue
        computed = computed_in(step)
        group = next((groups[name] for name in computed if name in groups), None)
        names = group.names if group is not None else computed
        compiled.members[step.name] = compiled.operations_of(names)


def computed_in(nest: Nest) -> list[str]:
    """Nodes of the value graph that a nest computes: statements are named after them."""
    names = [s.buffer if isinstance(s, Write) else s.name for s in nest.statements]
    return list(dict.fromkeys(names))


def fusion_records(compiled: Compiled, fusion: Fusion) -> Iterator[Record]:
    """Pairs, rounds, groups."""
    for pair in fusion.pairs:
        yield _pair(compiled, pair)
    left: dict[str, list[Pair]] = {}
    for pair in fusion.pairs:
        if pair.fused:
            left.setdefault(_kind(pair), []).append(pair)
    before = len(compiled.operations)
    for number, round_ in enumerate(fusion.rounds, 1):
        kind = "vertical" if round_.kind == "vertical" else "horizontal"
        yield FusionRound(
            graph=compiled.id,
            round=number,
            nodes_before=before,
            nodes_after=round_.groups,
            fused=tuple(_fused(compiled, pair) for pair in left.pop(kind, ())),
        )
        before = round_.groups
    yield FusionGroups(
        graph=compiled.id,
        groups=tuple(_group(compiled, step) for step in fusion.program.steps),
    )


def _kind(pair: Pair) -> Literal["vertical", "horizontal"]:
    return "vertical" if pair.kind == "vertical" else "horizontal"


def _names(compiled: Compiled, pair: Pair) -> tuple[str, str]:
    sides = (pair.first_group, pair.first), (pair.second_group, pair.second)
    first, second = ("_".join(compiled.operations_of(group)) or alone for group, alone in sides)
    return first, second


def _fused(compiled: Compiled, pair: Pair) -> tuple[str, str, str]:
    both = compiled.operations_of((*pair.first_group, *pair.second_group))
    return (*_names(compiled, pair), "_".join(both))


def _pair(compiled: Compiled, pair: Pair) -> FusionPair:
    first, second = _names(compiled, pair)
    return FusionPair(
        id=pair.id,
        graph=compiled.id,
        round=0,
        phase="commit",
        first=first,
        second=second,
        fused=pair.fused,
        rule=pair.rule.replace(" ", "-"),
        reason=pair.reason,
        kind=_kind(pair),
        score=(float(pair.score),),
        score_text=(
            f"saves {pair.score:,} bytes, holds {pair.working_set:,}, "
            f"{pair.parallelism:,} rows at once"
        ),
        shared_bytes=pair.shared_bytes,
    )


def _group(compiled: Compiled, step: Nest | Call) -> FusionGroup:
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
