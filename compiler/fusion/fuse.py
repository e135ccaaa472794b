"""Fusion: the value graph becomes loop nests and calls, in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compiler.control.decisions import Gate
from compiler.fusion.canonical import canonical
from compiler.fusion.decide import Decisions, Pair, Round
from compiler.fusion.dependencies import Dependencies, dependencies
from compiler.fusion.duplicates import without_duplicates
from compiler.fusion.groups import Group, final_space
from compiler.fusion.inline import Inlined, inlined
from compiler.fusion.liveness import live
from compiler.fusion.memories import memories, stored_values
from compiler.fusion.merge import grouping
from compiler.fusion.nests import nest
from compiler.fusion.order import Task, schedule
from compiler.fusion.reorder import reordered
from compiler.fusion.weights import L1, Weights
from compiler.loops.graph import Call, Graph
from compiler.loops.nest import Nest
from compiler.loops.program import Program


@dataclass(slots=True)
class Fusion:
    """The program, and what was decided on the way."""

    program: Program
    groups: list[Group] = field(default_factory=list)
    """One for each nest, in the order of the graph."""
    pairs: list[Pair] = field(default_factory=list)
    """Every pair of nodes considered, in the order in which they first were."""
    rounds: list[Round] = field(default_factory=list)
    inlined: list[Inlined] = field(default_factory=list)
    """Maps that became part of their readers, and those that could not."""


def fuse(graph: Graph, gate: Gate | None = None) -> Fusion:
    """Fuse the graph's nodes into loop nests. `gate` may force or forbid each choice."""
    gate = gate or Gate()
    weights = Weights(graph)
    for step in (canonical, live, without_duplicates, reordered):
        graph = replace(graph, nodes=step(graph))
    inlining = inlined(graph, weights, gate)
    graph = replace(graph, nodes=inlining.nodes)
    order = dependencies(graph)
    groups = grouping(graph, order, weights, inlining.names)
    decisions = Decisions(groups, gate)
    decisions.run()
    left = list(groups.groups.values())
    for group in left:
        group.space = final_space(group, L1, weights.accumulators(group.space.riders))
    return Fusion(
        program(graph, order, left),
        left,
        list(decisions.pairs.values()),
        decisions.rounds,
        inlining.considered,
    )


def program(graph: Graph, order: Dependencies, groups: list[Group]) -> Program:
    """The groups as nests and the calls, in the order in which they run."""
    stored = stored_values(graph, groups)
    runs: list[tuple[Group | Call, list[int]]] = [(group, group.places) for group in groups]
    runs += [(u, [place]) for place, u in enumerate(order.units) if isinstance(u, Call)]
    home = {place: index for index, (_, places) in enumerate(runs) for place in places}
    tasks = []
    for index, (run, places) in enumerate(runs):
        before = frozenset(home[p] for place in places for p in order.before[place]) - {index}
        tasks.append(Task(max(places), isinstance(run, Call), before))
    steps: list[Nest | Call] = []
    for index in schedule(tasks):
        run, _ = runs[index]
        steps.append(run if isinstance(run, Call) else nest(run, f"nest_{len(steps)}", stored))
    return Program(graph, tuple(steps), memories(graph, stored))
