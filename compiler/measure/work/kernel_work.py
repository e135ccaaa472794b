"""The work of one recorded kernel of either engine: bytes read, bytes written and FLOPs.

Bytes count each of the kernel's buffers once: inputs, to the extent that its operations touch them,
and outputs. Values that stay inside a kernel are not in memory. FLOPs are those of the lowered
graph's nodes that the kernel computes, by the rules of `tcw.compiler.measure.work.operations`. If
several kernels each compute a part of a node, each counts the whole node. The record of a kernel
that is called several times has the operations of all its calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tcw.compiler.measure.work.operations import (
    NOTHING,
    Work,
    operation_named,
    values_of,
    work_of_node,
)
from tcw.compiler.trace.records import Buffer, Graph, Kernel, MemoryPlan, Node, SchedulerNode

Home = tuple[str, int]
"""A kernel id, and the index of the call."""


class GraphWork:
    """The work of the kernels of one lowered graph, from its records."""

    def __init__(
        self,
        graph: Graph,
        kernels: Iterable[Kernel],
        operations: Iterable[SchedulerNode],
        plan: MemoryPlan | None,
    ) -> None:
        self._nodes = {node.name: node for node in graph.nodes}
        self._values = values_of(graph.nodes)
        self._operations = {operation.name: operation for operation in operations}
        self._lives: dict[str, Buffer] = {}
        if plan is not None:
            self._lives = {buffer.name: buffer for buffer in plan.buffers}
        self._homes: dict[str, set[Home]] = defaultdict(set)
        """Operation -> the kernel calls that carry it out."""
        for kernel in kernels:
            for place, names in enumerate(_calls(kernel)):
                for name in names:
                    self._homes[name].add((kernel.id, place))
        self._readers: dict[str, list[str]] = defaultdict(list)
        self._whole: dict[str, int] = {}
        for operation in self._operations.values():
            for name in operation.reads:
                self._readers[name].append(operation.name)
            for name, count in operation.touched.items():
                self._whole[name] = max(count, self._whole.get(name, 0))
        for name, life in self._lives.items():
            if life.bytes is not None and not life.alias_of:
                self._whole[name] = life.bytes

    def of(self, kernel: Kernel) -> tuple[Work, ...]:
        """The work of each call of a kernel, in order; None for unknown quantities."""
        calls = _calls(kernel)
        if not kernel.generated:
            work = self._of_library(kernel)
            return (work,) * len(calls)
        flops = self._flops(kernel.origins)
        share = None if flops is None else flops // len(calls)
        return tuple(
            self._of_loops(kernel, place, names, share) for place, names in enumerate(calls)
        )

    def _of_loops(
        self, kernel: Kernel, place: int, names: Sequence[str], flops: int | None
    ) -> Work:
        members = [self._operations[name] for name in names if name in self._operations]
        if not members:
            return Work(None, None, flops)
        step = kernel.steps[place] if place < len(kernel.steps) else None
        read: dict[str, dict[int, list[int | None]]] = defaultdict(dict)
        written: dict[str, list[int | None]] = defaultdict(list)
        made: set[str] = set()
        for member in members:
            for name in member.reads:
                if name not in made:
                    part = read[name].setdefault(member.parts.get(name, 0), [])
                    part.append(member.touched.get(name))
            for name in member.writes:
                if self._leaves(name, member, step):
                    written[name].append(member.touched.get(name))
            made.update(member.writes)
        parts = {name: [_largest(one) for one in parts.values()] for name, parts in read.items()}
        return Work(self._sum(parts), self._sum(written), flops)

    def _sum(self, touched: dict[str, list[int | None]]) -> int | None:
        """The sum over all buffers of their parts, at most each buffer's size."""
        total = 0
        for name, counts in touched.items():
            known = [count for count in counts if count is not None]
            if len(known) < len(counts):
                return None
            total += min(sum(known), self._whole.get(name, sum(known)))
        return total

    def _leaves(self, name: str, operation: SchedulerNode, step: int | None) -> bool:
        """Whether the kernel of this step stores an operation's output in memory."""
        life = self._lives.get(name)
        homes = self._homes[operation.name]
        if life is not None and len(homes) > 1 and step is not None and life.first != step:
            return False  # recomputed: another kernel has stored it
        if life is not None and life.kind != "temporary":
            return True
        readers = self._readers.get(name, [])
        if not readers:
            return True  # it is written for the caller
        return any(not (self._homes[reader] & homes) for reader in readers)

    def _of_library(self, kernel: Kernel) -> Work:
        node = self._called(kernel)
        work = NOTHING if node is None else work_of_node(node, self._values)
        if node is not None and work.read_bytes is not None and work.write_bytes is not None:
            return work
        members = [self._operations[name] for name in kernel.nodes if name in self._operations]
        flops = self._flops(kernel.origins) if node is None else work.flops
        read = [member.read_bytes for member in members]
        written = [member.write_bytes for member in members]
        return Work(_total(read), _total(written), flops)

    def _called(self, kernel: Kernel) -> Node | None:
        """The node that a library call carries out; None if unclear."""
        nodes = [self._nodes[name] for name in kernel.origins if name in self._nodes]
        wanted = operation_named(kernel.name)
        same = [node for node in nodes if wanted and operation_named(node.target) is wanted]
        if same:
            return same[-1]
        computing = [node for node in nodes if work_of_node(node, self._values) != NOTHING]
        return computing[0] if len(computing) == 1 else None

    def _flops(self, origins: Sequence[str]) -> int | None:
        nodes = [self._nodes[name] for name in origins if name in self._nodes]
        return _total([work_of_node(node, self._values).flops for node in nodes])


def _calls(kernel: Kernel) -> list[tuple[str, ...]]:
    """The operations of each call of a kernel. Calls share a kernel because they do the same work,
    so each has equally many."""
    count = max(1, len(kernel.steps))
    if not kernel.generated or len(kernel.nodes) % count:
        return [kernel.nodes] * count
    size = len(kernel.nodes) // count
    return [kernel.nodes[size * place : size * (place + 1)] for place in range(count)]


def _largest(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return max(known) if len(known) == len(counts) else None


def _total(values: Sequence[int | None]) -> int | None:
    """The sum; None if any value is unknown or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
