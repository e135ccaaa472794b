"""Fusion: the value graph becomes loop nests and calls, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.borders import with_borders
from tcw.compiler.fusion.build_nest import nest
from tcw.compiler.fusion.canonical import canonical, narrowed
from tcw.compiler.fusion.columns import with_columns
from tcw.compiler.fusion.decide import Decisions
from tcw.compiler.fusion.dependencies import Dependencies, dependencies, read_values, storage
from tcw.compiler.fusion.duplicates import without_duplicates
from tcw.compiler.fusion.execution_order import Task, schedule
from tcw.compiler.fusion.groups import Group, final_space
from tcw.compiler.fusion.inline import inlined
from tcw.compiler.fusion.leaves import forget, in_memory, operands, reads
from tcw.compiler.fusion.merge import grouping
from tcw.compiler.fusion.pairs import Listener, Pair
from tcw.compiler.fusion.reorder import reordered
from tcw.compiler.fusion.rows import elements
from tcw.compiler.fusion.short_reductions import without_short_reductions
from tcw.compiler.fusion.short_runs import without_short_runs
from tcw.compiler.fusion.split_at_pieces import split_at_pieces
from tcw.compiler.fusion.weights import CPU, Machine, Weights
from tcw.compiler.loops.expressions import Gather
from tcw.compiler.loops.graph import (
    Buffer,
    Call,
    Graph,
    Input,
    Map,
    Node,
    Reduce,
    Scan,
    Store,
    shape_of,
)
from tcw.compiler.loops.nest import Memory, Nest, Program


@dataclass(slots=True)
class Fusion:
    """The program, and the decisions that led to it."""

    program: Program
    groups: list[Group] = field(default_factory=list)
    """One per nest, in graph order."""
    pairs: list[Pair] = field(default_factory=list)
    """All pairs of nodes considered, ordered by when they were first considered."""
    rounds: list[int] = field(default_factory=list)
    """How many groups each pass has left."""


def fuse(
    graph: Graph, gate: Gate | None = None, listener: Listener | None = None, machine: Machine = CPU
) -> Fusion:
    """Fuse the graph's nodes into loop nests for a machine. `gate` may force or forbid each choice;
    `listener` is notified of each decision."""
    try:
        return _fuse(graph, gate or Gate(), listener, machine)
    finally:
        forget()


def _fuse(graph: Graph, gate: Gate, listener: Listener | None, machine: Machine) -> Fusion:
    weights = Weights(graph, machine)
    names: dict[str, list[str]] = {}
    graph = replace(graph, nodes=canonical(graph, names))
    graph = replace(graph, nodes=_live(graph))
    graph = replace(graph, nodes=narrowed(graph, names))
    graph = replace(graph, nodes=with_borders(graph, weights, names))
    graph = replace(graph, nodes=without_duplicates(graph, gate, names))
    graph = replace(graph, nodes=with_columns(graph, weights, gate, names))
    graph = replace(graph, nodes=_live(graph))
    fixed = in_memory(graph)
    if machine.runs:
        graph = replace(graph, nodes=without_short_reductions(graph, weights))
    graph = replace(graph, nodes=reordered(graph, fixed))
    known_as = listener.known_as if listener is not None else tuple
    graph = replace(graph, nodes=inlined(graph, weights, gate, fixed, names, known_as))
    if machine.runs:
        graph = replace(graph, nodes=without_short_reductions(graph, weights))
    pieces = split_at_pieces(graph, gate, names)
    if len(pieces) > len(graph.nodes):
        graph = replace(graph, nodes=_live(replace(graph, nodes=pieces)))
    graph = replace(graph, nodes=without_short_runs(graph, weights, names))
    order = dependencies(graph)
    groups = grouping(graph, order, weights, names, fixed)
    decisions = Decisions(groups, gate, listener)
    decisions.run()
    left = list(groups.groups.values())
    for group in left:
        group.space = final_space(group, machine.near, weights.accumulators(group.space.riders))
    return Fusion(
        program(graph, order, left, weights), left, list(decisions.pairs.values()), decisions.rounds
    )


def program(graph: Graph, order: Dependencies, groups: list[Group], weights: Weights) -> Program:
    """The groups as nests, and the calls, in execution order."""
    stored = stored_values(graph, groups)
    memory = memories(graph, stored)
    runs, tasks = tasks_of(order, groups, memory, weights)
    returned = graph.returned()
    dying = {m.name: weights.memory(m) for m in memory.values() if m.name not in returned}
    steps: list[Nest | Call] = []
    for index in schedule(tasks, dying):
        run = runs[index]
        if isinstance(run, Group):
            run.nest = f"nest_{len(steps)}"
            steps.append(nest(run, run.nest, stored))
        else:
            steps.append(run)
    return Program(graph, tuple(steps), memory)


def stored_values(graph: Graph, groups: Sequence[Group]) -> frozenset[str]:
    """Values that outputs, calls, gathers or other groups read."""
    home = {node.name: group.id for group in groups for node in group.members}
    wanted = operands(graph)
    for group in groups:
        for member in group.members:
            if isinstance(member, Store):
                wanted.add(member.buffer)
            for leaf in reads(member):
                if isinstance(leaf, Gather) or home.get(leaf.value) != group.id:
                    wanted.add(leaf.value)
    return frozenset(wanted)


def memories(graph: Graph, stored: frozenset[str]) -> dict[str, Memory]:
    """The memory of every value that a nest writes, except the caller's memory."""
    found: dict[str, Memory] = {}
    for node in graph.nodes:
        if isinstance(node, (Map, Reduce, Scan, Buffer)) and node.name in stored:
            shape = shape_of(node)
            found[node.name] = Memory(node.name, node.dtype, shape, elements(shape))
    return found


def tasks_of(
    order: Dependencies, groups: list[Group], memory: dict[str, Memory], weights: Weights
) -> tuple[list[Group | Call], list[Task]]:
    """The groups and calls to run, and the corresponding tasks for the scheduler."""
    nodes = order.nodes
    runs: list[Group | Call] = [*groups]
    places = [group.places for group in groups]
    for place, node in enumerate(nodes):
        if isinstance(node, Call):
            runs.append(node)
            places.append([place])
    home = {place: index for index, mine in enumerate(places) for place in mine}
    tasks: list[Task] = []
    for index, (run, mine) in enumerate(zip(runs, places, strict=True)):
        before = dict.fromkeys(home[p] for place in mine for p in order.before[place])
        before.pop(index, None)
        read = dict.fromkeys(n for place in mine for n in read_values(nodes[place]))
        made = [memory[nodes[p].name] for p in mine if nodes[p].name in memory]
        makes = 0 if isinstance(run, Call) else sum(weights.memory(m) for m in made)
        own = {m.name for m in made}
        outer = tuple(name for name in read if name in memory and name not in own)
        tasks.append(Task(max(mine), isinstance(run, Call), tuple(before), outer, makes))
    return runs, tasks


def _live(graph: Graph) -> list[Node]:
    """The nodes that an output, call or mutation observes. Calls with effects are always live."""
    memory = storage(graph)
    wanted = {memory[value] for value in graph.returned()}
    wanted |= {memory[node.name] for node in graph.nodes if isinstance(node, Input)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if isinstance(node, (Input, Buffer)):
            if isinstance(node, Input) or memory[node.name] in wanted:
                kept.append(node)
            continue
        needed = isinstance(node, Call) or (
            memory[node.buffer if isinstance(node, Store) else node.name] in wanted
        )
        if needed:
            wanted.update(memory[name] for name in read_values(node))
            kept.append(node)
    kept.reverse()
    return kept
