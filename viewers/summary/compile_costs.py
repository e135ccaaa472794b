"""What makes a compile long that one look at the source does not show: a loop that Dynamo unrolled,
equal blocks that are compiled one after the other, an expression that lowering writes out many
times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcw.compiler.trace.matching import is_predicted
from tcw.compiler.trace.records import Advice, Graph, Guards, Location, Node
from tcw.viewers.collected import grouped
from tcw.viewers.labels import short_target
from tcw.viewers.recording import Recording
from tcw.viewers.summary.phases import stage_times
from tcw.viewers.words import listed, number, percent, plural, seconds_text

ITERATIONS = 50
"""Equal operations of one line from which it counts as an unrolled loop."""
BLOCKS = 8
"""Equal blocks from which compiling one for all pays off."""
LONG = 10.0
"""Seconds from which a compile is long."""
OPERATIONS = 1000
"""Operations of a loop body from which it is large."""
GROWTH = 10
"""Operations of a loop body for each node of the graph from which they repeat each other."""


@dataclass(frozen=True)
class CompileCost:
    """All texts may contain the user's words: show them as data."""

    title: str
    cost: str
    location: Location | None
    notes: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    """Ideas."""
    compile_id: str = ""


def compile_costs(recording: Recording) -> tuple[CompileCost, ...]:
    """One for each unrolled line, model of equal blocks, and loop body that exploded."""
    stages = {time.stage: time.seconds for time in stage_times(recording)}
    found: list[CompileCost] = []
    for graph in recording.graphs.values():
        if graph.kind == "captured":
            nodes = [node for node in graph.nodes if node.op.startswith("call_")]
            found += _unrolled(recording, graph, nodes, stages)
            found += _blocks(graph, nodes, stages)
    found += _exploded(recording, stages)
    return tuple(found)


def _unrolled(
    recording: Recording, graph: Graph, nodes: Sequence[Node], stages: dict[str, float]
) -> Iterator[CompileCost]:
    """Loops whose operations are most of a graph: many equal ones, called along the same lines.
    Equal ones in different modules of a list are no loop of their line."""
    equal = grouped(
        ((chain, _container(node), node.target), node) for node in nodes if (chain := _chain(node))
    )
    repeated = {key: same for key, same in equal.items() if len(same) >= ITERATIONS}
    loops = grouped(((key[0][0].file, key[0][0].function), key) for key in repeated)
    for keys in loops.values():
        counts = [len(repeated[key]) for key in keys]
        if 2 * sum(counts) < len(nodes):
            continue
        least, most = min(counts), max(counts)
        times = number(least) if least == most else f"{number(least)} to {number(most)}"
        names = listed(list(dict.fromkeys(short_target(key[2]) for key in keys)))
        body = _first_apart([chain for chain, _, _ in keys])
        guards = next(
            (one.count for one in recording.all(Guards) if one.compile_id == graph.compile_id), 0
        )
        took = stages.get("capture", 0.0)
        notes = [f"{number(sum(counts))} of {plural(len(nodes), 'graph node')}"]
        notes += [plural(guards, "guard")] if guards else []
        notes += _spent(stages, "capture")
        yield CompileCost(
            title=f"a loop is unrolled: {names} are in the graph {times} times",
            cost=seconds_text(took) if took else f"{number(most)} ×",
            location=body,
            notes=tuple(notes),
            advice=(
                Advice(
                    text="Make the body of the loop a function, compile that alone, and leave the "
                    "loop to Python: the body is captured once"
                ),
                Advice(
                    text="Where no iteration needs the one before, one operation on a stacked "
                    "tensor; else torch.scan or torch.while_loop in place of the loop"
                ),
            ),
            compile_id=graph.compile_id,
        )


def _first_apart(chains: Sequence[tuple[Location, ...]]) -> Location:
    """The first line behind what these calls have in common: the loop's body."""
    first = chains[0]
    for depth, place in enumerate(first):
        if any(len(chain) <= depth or _line(chain[depth]) != _line(place) for chain in chains):
            return place
    return first[-1]


def _chain(node: Node) -> tuple[Location, ...]:
    """The lines of the calls that led to a node, outermost first."""
    return node.stack or ((node.location,) if node.location is not None else ())


def _line(location: Location | None) -> tuple[str, int] | None:
    return (location.file, location.line) if location is not None else None


_NUMBER = re.compile(r"(?:^|(?<=\.))\d+(?=\.|$)")


def _container(node: Node) -> str:
    """`layers.3` of `layers.3.attention`: which block it is in; "" outside any."""
    match = _NUMBER.search(node.module)
    return node.module[: match.end()] if match else ""


def _blocks(graph: Graph, nodes: Sequence[Node], stages: dict[str, float]) -> Iterator[CompileCost]:
    """Modules of one list whose operations are equal: `layers.0`, `layers.1`, …"""
    total = sum(stages.values())
    blocks = grouped((_container(node), node) for node in nodes)
    blocks.pop("", None)
    lists = grouped((path.rpartition(".")[0], path) for path in blocks)
    for path, members in lists.items():
        alike = grouped((_shape_of(blocks[member], member), member) for member in members)
        equal = max(alike.values(), key=len)
        of_them = sum(len(blocks[member]) for member in equal)
        if len(equal) < BLOCKS or 2 * of_them < len(nodes) or total < LONG:
            continue
        first = blocks[equal[0]][0]
        caller = first.stack[0] if first.stack else first.location
        attribute = "model" + "".join(
            f"[{part}]" if part.isdigit() else f".{part}" for part in filter(None, path.split("."))
        )
        yield CompileCost(
            title=f"{len(equal)} equal blocks of {path or 'the model'} are compiled one after the "
            "other",
            cost=seconds_text(total),
            location=caller,
            notes=(
                f"{percent(of_them / len(nodes))} of the graph's nodes",
                *_spent(stages, "capture", "autograd"),
            ),
            advice=(
                Advice(
                    text="Compile the block instead of the model: its code is compiled once, and "
                    "what runs between blocks is not fused with them",
                    code=f"for block in {attribute}:\n    block.compile()",
                ),
                Advice(
                    text="On the block's forward: the model stays one graph, in which it is "
                    "captured once",
                    code="@torch.compiler.nested_compile_region",
                ),
            ),
            compile_id=graph.compile_id,
        )


def _shape_of(nodes: Sequence[Node], path: str) -> tuple[object, ...]:
    """What a block computes, without its own path: equal blocks have equal ones."""
    return tuple(
        (node.target, node.module.removeprefix(path), _line(node.location), node.value)
        for node in nodes
    )


def _exploded(recording: Recording, stages: dict[str, float]) -> Iterator[CompileCost]:
    """The largest loop body of a long compile, if it repeats what few nodes of the graph say."""
    after_capture = {
        name: took for name, took in stages.items() if name not in ("capture", "autograd")
    }
    sized = [
        (sum(1 for line in node.nest if line.operation), node)
        for node in recording.operations.values()
        if not is_predicted(node.graph)
    ]
    if not sized or sum(after_capture.values()) < LONG:
        return
    size, node = max(sized, key=lambda pair: pair[0])
    if size < OPERATIONS or size < GROWTH * len(node.origins):
        return
    nodes = recording.nodes(node.graph)
    places = [
        found.location
        for name in reversed(node.origins)
        if (found := nodes.get(name)) is not None and found.location is not None
    ]
    stage, took = max(after_capture.items(), key=lambda item: item[1])
    graph = recording.graphs.get(node.graph)
    yield CompileCost(
        title=f"{plural(len(node.origins), 'graph node')} became one loop of {number(size)} "
        "operations: each use of a value writes out again what computes it",
        cost=seconds_text(sum(after_capture.values())),
        location=places[0] if places else None,
        notes=(
            f"{node.name} ({node.label}) of {node.graph}",
            f"{stage} took {seconds_text(took)} of {seconds_text(sum(stages.values()))}",
        ),
        advice=(
            Advice(
                text="A value that is kept in memory is written out once",
                code="torch._inductor.config.realize_opcount_threshold = 8",
            ),
        ),
        compile_id=graph.compile_id if graph is not None else "",
    )


def _spent(stages: dict[str, float], *names: str) -> list[str]:
    """`capture and autograd took 30.1 s of 34.0 s`; nothing if no phase was timed."""
    took, total = sum(stages.get(name, 0.0) for name in names), sum(stages.values())
    if not took:
        return []
    return [f"{' and '.join(names)} took {seconds_text(took)} of {seconds_text(total)}"]
