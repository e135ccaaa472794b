"""Whether a veto holds: the two sides share no loop nest, directly or through others."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.control.decisions import APART, FUSE, split_id
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import FusionGroups, SchedulerNode
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.overrides import settings_of


@dataclass(frozen=True)
class Veto:
    """One veto of a run, and its effect."""

    id: str
    first: str
    second: str
    holds: bool | None
    """None if the recording does not say; `evidence` says why."""
    evidence: str
    """`both nests stay in one C++ function, k2`; the shared nest if it fails."""


def vetoes_of(run: Recording) -> tuple[Veto, ...]:
    """Every veto among the run's overrides."""
    settings = settings_of(run)
    if settings is None:
        return ()
    return tuple(
        _veto(run, id)
        for id, choice in settings.overrides.items()
        if choice == APART and split_id(id)[1] == FUSE
    )


def _veto(run: Recording, id: str) -> Veto:
    graph, _, parts = split_id(id)
    if len(parts) != 2:
        return Veto(id, "+".join(parts), "", None, "the id does not name two nodes")
    first, second = parts
    nodes = [n for n in run.all(SchedulerNode) if base_graph(n.graph) == graph]
    groups = [record for record in run.all(FusionGroups) if base_graph(record.graph) == graph]
    if not groups:
        return Veto(id, first, second, None, f"the loop nests of {graph} were not recorded")
    tests = run.decisions.tests.get(id)
    groups_of = tests[-1].sides if tests else ("", "")
    sides = [_nodes(nodes, *one) for one in zip(parts, groups_of, strict=True)]
    for name, side in zip(parts, sides, strict=True):
        if not side:
            return Veto(id, first, second, None, f"{graph} has no node {name}")
    loops = [group for group in groups[-1].groups if group.kind not in ("extern", "nop")]
    for group in loops:
        if all(side & set(group.nodes) for side in sides):
            return Veto(id, first, second, False, f"both are in {group.label or group.name}")
    return Veto(id, first, second, True, _functions(run, graph, sides))


def _nodes(nodes: list[SchedulerNode], name: str, group: str) -> set[str]:
    """Scheduler nodes that a name in an id refers to: its writer, else those that compute it.

    `var_mean.3` is the third one that computes `var_mean`, within the group of the pair.
    """
    written = {node.name for node in nodes if name in node.writes or name == node.name}
    computing = {node.name for node in nodes if name in node.origins}
    return written or computing or {node.name for node in nodes if node.name in group.split("_")}


def _functions(run: Recording, graph: str, sides: list[set[str]]) -> str:
    kernels = [
        kernel
        for kernel in run.kernels.values()
        if base_graph(kernel.graph) == graph and not kernel.predicted
    ]
    where = [[k for k in kernels if side & set(k.nodes)] for side in sides]
    shared = [k.id for k in where[0] if k in where[1]]
    if shared:
        return f"both nests stay in one C++ function, {', '.join(shared)}"
    ids = [", ".join(k.id for k in side) for side in where]
    return f"they are in {ids[0]} and in {ids[1]}" if all(ids) else ""
