"""What generated loops do worse than they could: compute a value several times, use no vectors,
read memory with gaps, run on one thread; and what a backward computes again.

Each is read from the loop nests and decisions in the trace. How many microseconds it costs is not:
only a measured kernel says that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from tcw.compiler.trace.index_steps import at_place, step_along
from tcw.compiler.trace.loop_nests import COSTLY, LoopNest, outermost_loops
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Decided, Kernel, Location, LoopLine, Partition
from tcw.compiler.trace.records.base import MOST
from tcw.viewers.labels import is_view, short_label, short_target
from tcw.viewers.recording import Recording
from tcw.viewers.words import bytes_text, listed, number, plural

FaultKind = Literal["computed again", "no vectors", "strided reads", "one thread", "recomputed"]
LEAST = 32_768
"""Iterations from which a loop matters: from as many elements on ATen uses several threads
(`at::internal::GRAIN_SIZE`)."""

REALIZE = "torch._inductor.config.realize_opcount_threshold = 1"
"""Inductor then keeps in memory what several loops would each compute."""


@dataclass(frozen=True)
class CodeFault:
    """Texts may contain the user's words: show them as data."""

    kind: FaultKind
    text: str
    """`sin is computed 1.5 times for each of its 2,097,152 elements`."""
    weight: int
    """Iterations, or values, that it concerns: the largest comes first."""
    kernels: tuple[str, ...] = ()
    """Ids of the kernels that do it."""
    line: int = 0
    """Line of the nest's outermost loop in the kernel's text; 0 if it is about no single nest."""
    location: Location | None = None


def code_faults(recording: Recording) -> tuple[CodeFault, ...]:
    """All of them, those that concern most iterations first; none of predicted code."""
    kernels = [k for k in recording.kernels.values() if k.generated and not k.predicted]
    found = [*_computed_again(recording, kernels), *_recomputed(recording)]
    for kernel in kernels:
        if kernel.language == "cpp":
            found += _of_kernel(recording, kernel)
    return tuple(sorted(found, key=lambda fault: -fault.weight))


@dataclass(frozen=True)
class _Statement:
    """A line of a nest, with the loops around it."""

    line: LoopLine
    loops: tuple[int, ...]
    """Their numbers in the nest, outermost first."""
    variables: tuple[str, ...]
    sizes: tuple[int, ...]


def _statements(lines: Sequence[LoopLine]) -> Iterator[_Statement]:
    """The lines outside subblocks, which run only where their mask says so. Those in loops of a
    symbolic size are left out: how often they run is unknown."""
    heads: list[tuple[int, LoopLine]] = []
    masked: int | None = None
    for place, line in enumerate(lines):
        if masked is not None and line.depth > masked:
            continue
        masked = line.depth if line.operation == "subblock" else None
        if line.variable:
            heads[line.depth :] = [(place, line)]
        elif masked is None:
            around = heads[: line.depth]
            sizes = [head.size for _, head in around]
            if all(isinstance(size, int) for size in sizes):
                yield _Statement(
                    line,
                    tuple(at for at, _ in around),
                    tuple(head.variable for _, head in around),
                    tuple(int(size) for size in sizes),
                )


def _points(sizes: Iterable[int]) -> int:
    """Iterations of loops of these sizes; a damaged trace may have any."""
    return max(0, min(prod(sizes), MOST))


def _computed_again(recording: Recording, kernels: Sequence[Kernel]) -> Iterator[CodeFault]:
    """Costly operations that Inductor put into several loops, or into a loop over more elements
    than their results have."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    where: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    loops: dict[tuple[str, str], int] = defaultdict(int)
    for kernel in kernels:
        for nest in kernel.nests:
            seen: dict[tuple[str, str], set[tuple[int, ...]]] = defaultdict(set)
            for name, statement in _evaluations(nest.lines):
                key = (kernel.graph, name)
                counts[key] += _points(statement.sizes)
                where[key][kernel.id] = None
                seen[key].add(statement.loops)
            for key, places in seen.items():
                loops[key] += len(places)
    for (graph, name), count in counts.items():
        node = recording.nodes(graph).get(name)
        shape = node.value.shape if node is not None and node.value is not None else None
        if node is None or shape is None or not all(isinstance(size, int) for size in shape):
            continue
        elements = _points(int(size) for size in shape)
        extra = count - elements
        if extra < LEAST or not elements:
            continue
        operation = short_target(node.target)
        times = f"{count / elements:.3g} times"
        beside = f", in {plural(loops[graph, name], 'loop')}" if loops[graph, name] > 1 else ""
        text = f"{operation} is computed {times} for each of its {number(elements)} elements"
        kernel_ids = tuple(where[graph, name])
        yield CodeFault("computed again", text + beside, extra, kernel_ids, location=node.location)


def _evaluations(lines: Sequence[LoopLine]) -> Iterator[tuple[str, _Statement]]:
    """(node, statement) for each costly operation of a nest. One that the same loop has already
    computed from the same elements counts once: the code generator keeps its value."""
    values: dict[str, int] = {}
    numbers: dict[object, int] = {}
    for statement in _statements(lines):
        line = statement.line
        places = dict(zip(statement.variables, _PLACES, strict=False))
        arguments = tuple(
            values.get(argument, at_place(argument, places)) for argument in line.arguments
        )
        value = (statement.loops, line.operation, arguments)
        new = value not in numbers
        values[line.result] = numbers.setdefault(value, -len(numbers) - 1)
        if new and line.operation in COSTLY and _is_of(line.node, line.operation):
            yield line.node, statement


_PLACES = (1009, 10007, 100003, 1000003, 10000019, 100000007, 1000000007, 10000000019)
"""Where two index expressions are compared: primes far apart."""


def _is_of(node: str, operation: str) -> bool:
    """Whether a node is this operation itself, not one that consists of several: `exp_2`."""
    return re.fullmatch(rf"{operation}(_\d+)?", node) is not None


def _recomputed(recording: Recording) -> Iterator[CodeFault]:
    for split in recording.all(Partition):
        nodes = recording.nodes(split.backward)
        again = [
            value
            for value in split.values
            if value.choice == "recomputed"
            and ((node := nodes.get(value.node)) is None or (node.inputs and not is_view(node)))
        ]
        known = [value.bytes for value in again if value.bytes is not None]
        if not again or sum(known) < 4 * LEAST:
            continue
        names = listed(list(dict.fromkeys(value.node for value in again)))
        text = f"the backward computes {names} of the forward again; {bytes_text(sum(known))} "
        place = next((value.location for value in again if value.location is not None), None)
        yield CodeFault("recomputed", f"{text}less is saved", sum(known) // 4, location=place)


def _of_kernel(recording: Recording, kernel: Kernel) -> Iterator[CodeFault]:
    """What is wrong with the C++ of one kernel."""
    if any(nest.lines for nest in kernel.nests):
        yield from _of_inductor(recording, kernel)
    else:
        yield from _of_engine(recording, kernel)


def _of_inductor(recording: Recording, kernel: Kernel) -> Iterator[CodeFault]:
    text = recording.text(kernel.text)
    loops = outermost_loops(text)
    if len(loops) != len(kernel.nests):
        return
    lines = text.splitlines()
    for loop, nest in zip(loops, kernel.nests, strict=True):
        statements = list(_statements(nest.lines))
        points = max((_points(one.sizes) for one in statements), default=0)
        if points < LEAST:
            continue
        words = _words(recording, kernel, nest.nodes)
        place = _location(recording, kernel, nest.nodes)

        def fault(
            kind: FaultKind, said: str, points: int = points, loop: LoopNest = loop,
            place: Location | None = place,
        ) -> CodeFault:  # fmt: skip
            return CodeFault(kind, said, points, (kernel.id,), loop.line, place)

        body = lines[loop.line - 1 : loop.last]
        axis = vector_axis(body)
        gaps = list(_gaps(statements, axis))
        because = f", reading {listed(gaps)}" if gaps else ""
        if axis is None and not any("at::vec::" in line for line in body):
            yield fault("no vectors", f"{words} runs element by element, without vectors{because}")
        elif gaps and not any("transpose_mxn" in line for line in body):
            yield fault("strided reads", f"{words} reads {listed(gaps)}")
        if not loop.shared and _threads(recording) > 1:
            yield fault("one thread", f"{words} runs on one thread of {_threads(recording)}")


_HEAD = re.compile(r"\s*for\s*\(int64_t (\w+)=.*;.*; *\1\+=\s*(?:static_cast<int64_t>\()?(\d+)")


def vector_axis(body: Iterable[str]) -> int | None:
    """Which loop of Inductor's C++, from 0 at the outermost, goes in steps of whole vectors; None
    if none does. A loop after others at the same depth is of the same axis."""
    axes: dict[str, int] = {}
    for line in body:
        if match := _HEAD.match(line):
            axis = axes.setdefault(match[1], len(axes))
            if int(match[2]) > 1:
                return axis
    return None


def _gaps(statements: Sequence[_Statement], axis: int | None) -> Iterator[str]:
    """`x with a step of 2 elements`: reads along the axis of the vectors, else of the innermost
    loop, that skip elements."""
    seen: set[str] = set()
    for statement in statements:
        line = statement.line
        if line.operation != "load" or len(line.arguments) < 2 or not statement.variables:
            continue
        place = len(statement.variables) - 1 if axis is None else axis
        if place >= len(statement.variables):
            continue
        buffer, index, *_ = line.arguments
        step = step_along(index, statement.variables[place], statement.variables)
        if step is not None and abs(step) > 1 and buffer not in seen:
            seen.add(buffer)
            yield f"{buffer} with a step of {number(abs(step))} elements"


def _of_engine(recording: Recording, kernel: Kernel) -> Iterator[CodeFault]:
    """What our engine decided about the nest of a kernel."""
    nodes = [
        operation
        for name in kernel.nodes
        if (operation := recording.operations.get((kernel.graph, name))) is not None
    ]
    statements = [one for node in nodes for one in _statements(node.nest)]
    points = max((_points(one.sizes) for one in statements), default=0)
    if points < LEAST:
        return
    words = _words(recording, kernel, kernel.nodes)
    place = kernel.locations[0] if kernel.locations else None
    line = kernel.loops[0] if kernel.loops else 0

    def fault(kind: FaultKind, said: str) -> CodeFault:
        return CodeFault(kind, said, points, (kernel.id,), line, place)

    vector = decision_of(recording, kernel, "vector")
    if vector is not None and vector.choice == "1":
        why = f": {vector.reason}" if vector.reason else ""
        yield fault("no vectors", f"{words} runs element by element, without vectors{why}")
    threads = decision_of(recording, kernel, "threads")
    if threads is not None and threads.choice == "one" and _threads(recording) > 1:
        why = f": {threads.reason}" if threads.reason else ""
        yield fault("one thread", f"{words} runs on one thread of {_threads(recording)}{why}")
    if decision_of(recording, kernel, "lanes") is None:  # the lanes are along the last axis
        written = {buffer for node in nodes for buffer in node.writes}
        outside = [s for s in statements if s.line.arguments[:1] not in [(b,) for b in written]]
        if gaps := list(_gaps(outside, None)):
            yield fault("strided reads", f"{words} reads {listed(gaps)}")


def decision_of(recording: Recording, kernel: Kernel, kind: str) -> Decided | None:
    """The decision of this kind that our engine made about a kernel, if it made one."""
    graph = base_graph(kernel.graph)
    for decided in recording.decisions.taken(kind, graph, f"{graph}/lowered"):
        named = decided.id.rpartition("/")[2].partition("#")[0]
        if any(name in kernel.origins for name in named.split("+")):
            return decided
    return None


def _threads(recording: Recording) -> int:
    machine = recording.environment
    return machine.threads if machine is not None else 1


def _words(recording: Recording, kernel: Kernel, nodes: Sequence[str]) -> str:
    """What a nest computes: `sin, mul, add`."""
    labels = [
        operation.label
        for name in nodes
        if (operation := recording.operations.get((kernel.graph, name))) is not None
    ]
    return short_label(", ".join(labels), "backward" in kernel.graph) or kernel.name


def _location(recording: Recording, kernel: Kernel, nodes: Sequence[str]) -> Location | None:
    """The line of the last node of the lowered graph that these scheduler nodes compute."""
    graph = recording.nodes(kernel.graph)
    for name in reversed(nodes):
        operation = recording.operations.get((kernel.graph, name))
        for origin in reversed(operation.origins if operation is not None else ()):
            node = graph.get(origin)
            if node is not None and node.location is not None:
                return node.location
    return None
