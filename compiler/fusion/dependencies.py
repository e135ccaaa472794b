"""Ordering constraints: values, memory that is written repeatedly (and whether a read may move past
a write), calls with side effects."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from tcw.compiler.fusion.leaves import reads
from tcw.compiler.loops.graph import Buffer, Call, Compute, Graph, Input, Store, written_values
from tcw.compiler.loops.layouts import Layout, normalize
from tcw.compiler.loops.sizes import Size, add, at_least, multiply, subtract

Computation = Compute | Call
"""A node that computes: every one but inputs and buffers."""

RANDOM = (
    "rand",
    "dropout",
    "bernoulli",
    "multinomial",
    "poisson",
    "normal",
    "exponential",
    "uniform",
    "cauchy",
    "geometric",
    "philox",
    "rng",
)
"""Name fragments of operators that draw random numbers."""


@dataclass(slots=True)
class Dependencies:
    """The dependencies of each node, by its place in `nodes`."""

    nodes: list[Computation]
    place: dict[str, int]
    """Name of a compute node or of a call's result -> place."""
    before: list[dict[int, str]] = field(default_factory=list)
    """Node -> the nodes that it depends on, and why: it reads their `value`, it reads or writes
    `memory` that they wrote, it `overwrites` what they read, or both have an `effect`."""
    overwrites: list[dict[int, str]] = field(default_factory=list)
    """Node -> earlier readers of memory that it writes, with the name of that memory."""


def dependencies(graph: Graph) -> Dependencies:
    """All ordering constraints of the graph."""
    nodes: list[Computation] = [n for n in graph.nodes if not isinstance(n, (Input, Buffer))]
    found = Dependencies(nodes, {})
    memory = storage(graph)
    writers: dict[str, list[int]] = {}
    readers: dict[str, list[int]] = {}
    effect = -1
    for place, node in enumerate(nodes):
        if not isinstance(node, Call):
            found.place[node.name] = place
        before: dict[int, str] = {}
        overwrites: dict[int, str] = {}
        for name in read_values(node):
            for writer in writers.get(memory[name], ()):
                if not _defines(nodes[writer], name):
                    before[writer] = "memory"
                else:
                    before.setdefault(writer, "value")
        for name in written_values(node):
            for writer in writers.get(memory[name], ()):
                if not apart(nodes[writer], node):
                    before[writer] = "memory"
            for reader in readers.get(memory[name], ()):
                read = (v for v in read_values(nodes[reader]) if memory[v] == memory[name])
                if all(value == name for value in read):
                    before.setdefault(reader, "overwrites")
                    overwrites[reader] = name
                else:
                    before[reader] = "memory"
        for name in read_values(node):
            readers.setdefault(memory[name], []).append(place)
        for name in written_values(node):
            writers.setdefault(memory[name], []).append(place)
        if isinstance(node, Call):
            for result in node.results:
                if result is not None:
                    found.place[result.name] = place
                    writers.setdefault(memory[result.name], []).append(place)
            if has_effect(node):
                if effect >= 0:
                    before.setdefault(effect, "effect")
                effect = place
        elif not isinstance(node, Store):
            writers.setdefault(node.name, []).append(place)
        found.before.append(before)
        found.overwrites.append(overwrites)
    return found


def storage(graph: Graph) -> dict[str, str]:
    """Value -> the representative of its memory: a call's results may alias its arguments."""
    memory: dict[str, str] = {name: name for name in graph.values()}
    for node in graph.nodes:
        if not isinstance(node, Call) or not node.aliases:
            continue
        names = [*node.aliases, *(result.name for result in node.results if result is not None)]
        roots = [memory[name] for name in names]
        for name, root in memory.items():
            if root in roots:
                memory[name] = roots[0]
    return memory


def read_values(node: Computation) -> Iterator[str]:
    """Values whose memory a node reads, without duplicates."""
    if isinstance(node, Call):
        yield from dict.fromkeys(operand.value for operand in node.operands())
    else:
        yield from dict.fromkeys(leaf.value for leaf in reads(node))


def _defines(node: Computation, name: str) -> bool:
    return not isinstance(node, (Call, Store)) and node.name == name


def has_effect(call: Call) -> bool:
    """Whether its order among such calls matters: random numbers and non-ATen operators."""
    namespace, _, operator = call.target.partition(".")
    return namespace != "aten" or any(word in operator for word in RANDOM)


def apart(first: Computation, second: Computation) -> bool:
    """Whether two stores are certainly disjoint, as the pieces of one cat are."""
    if not (isinstance(first, Store) and isinstance(second, Store)):
        return False
    if first.terms or second.terms or len(first.view) != 1 or len(second.view) != 1:
        return False
    one, two = widest_first(first.view[0]), widest_first(second.view[0])
    while True:
        stops = _stop(one), _stop(two)
        if stops[0] is None or stops[1] is None:
            return False
        if at_least(two.offset, stops[0]) or at_least(one.offset, stops[1]):
            return True
        if not one.shape or not two.shape or one.strides[0] != two.strides[0]:
            return False
        period = one.strides[0]
        before = _whole_periods(one.offset, two.offset, period)
        one, two = (
            Layout(x.shape[1:], x.strides[1:], subtract(x.offset, before)) for x in (one, two)
        )
        for layout in (one, two):
            stop = _stop(layout)
            if stop is None or not at_least(period, stop) or not at_least(layout.offset, 0):
                return False


def _whole_periods(one: Size, two: Size, period: Size) -> Size:
    """What both offsets have in common: the rows of an image before its middle and its border."""
    if isinstance(one, int) and isinstance(two, int) and isinstance(period, int) and period > 0:
        return min(one, two) // period * period
    return 0


def widest_first(layout: Layout) -> Layout:
    """A layout with the same image, its digits by descending stride if all strides are numbers."""
    normal = normalize(layout)
    digits = list(zip(normal.strides, normal.shape, strict=True))
    if all(isinstance(stride, int) for stride in normal.strides):
        digits.sort(key=lambda digit: digit[0] if isinstance(digit[0], int) else 0, reverse=True)
    return Layout(
        tuple(size for _, size in digits), tuple(stride for stride, _ in digits), normal.offset
    )


def _stop(layout: Layout) -> Size | None:
    """One more than the largest index that a layout maps to, or None if a stride is negative."""
    reach = layout.offset
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        if not at_least(stride, 0):
            return None
        reach = add(reach, multiply(subtract(size, 1), stride))
    return add(reach, 1)


class Versions:
    """The places in the graph at which each memory is overwritten after its creation."""

    def __init__(self, graph: Graph) -> None:
        self.memory = storage(graph)
        self.writes: dict[str, list[int]] = {}
        for place, node in enumerate(graph.nodes):
            if not isinstance(node, (Input, Buffer)):
                for name in written_values(node):
                    self.writes.setdefault(self.memory[name], []).append(place)

    def version(self, value: str, place: int) -> int:
        """The number of writes to a value's memory before this place."""
        writes = self.writes.get(self.memory[value])
        return bisect_right(writes, place) if writes else 0

    def same(self, value: str, first: int, second: int) -> bool:
        """Whether a read of a value returns the same at two places."""
        return self.version(value, first) == self.version(value, second)
