"""Fusion: the value graph becomes loop nests and calls, in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compiler.control.decisions import Gate
from compiler.fusion.canonical import canonical
from compiler.fusion.dependencies import Dependencies, dependencies
from compiler.fusion.groups import Group, alone
from compiler.fusion.liveness import live
from compiler.fusion.memories import memories, stored_values
from compiler.fusion.nests import nest
from compiler.fusion.order import Task, schedule
from compiler.loops.graph import Call, Graph
from compiler.loops.nest import Nest
from compiler.loops.program import Program


@dataclass(slots=True)
class Fusion:
    """The program, and what was decided on the way."""

    program: Program
    groups: list[Group] = field(default_factory=list)
    pairs: list[object] = field(default_factory=list)
    rounds: list[object] = field(default_factory=list)
    inlined: list[object] = field(default_factory=list)


def fuse(graph: Graph, gate: Gate | None = None) -> Fusion:
    """Fuse the graph's nodes into loop nests. `gate` may force or forbid each choice."""
    gate = gate or Gate()
    graph = replace(graph, nodes=canonical(graph))
    graph = replace(graph, nodes=live(graph))
    order = dependencies(graph)
    groups = [alone(i, unit) for i, unit in enumerate(order.units) if not isinstance(unit, Call)]
    return Fusion(program(graph, order, groups), groups)


def program(graph: Graph, order: Dependencies, groups: list[Group]) -> Program:
    """The groups as nests and the calls, in the order in which they run."""
    stored = stored_values(graph, groups)
    runs: list[Group | Call] = [*groups, *(u for u in order.units if isinstance(u, Call))]
    home: dict[int, int] = {}
    for index, run in enumerate(runs):
        for unit in [run] if isinstance(run, Call) else run.members:
            home[order.place[unit.name]] = index
    tasks = []
    for index, run in enumerate(runs):
        units = [run] if isinstance(run, Call) else run.members
        places = [order.place[unit.name] for unit in units]
        before = frozenset(home[p] for place in places for p in order.before[place]) - {index}
        tasks.append(Task(max(places), isinstance(run, Call), before))
    steps: list[Nest | Call] = []
    for index in schedule(tasks):
        run = runs[index]
        steps.append(run if isinstance(run, Call) else nest(run, f"nest_{len(steps)}", stored))
    return Program(graph, tuple(steps), memories(graph, stored))
