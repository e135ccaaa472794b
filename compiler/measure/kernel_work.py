"""What one recorded kernel has to do, of either engine: bytes it reads and writes, and FLOPs.

Bytes are those of its buffers, each once: what comes from outside of it, as much as its operations
touch of it, and what leaves it. What stays inside a kernel is in no memory. FLOPs are those of the
nodes of the lowered graph that it computes, by the rules of `compiler.measure.work`; of a node that
several kernels compute a part of, each counts the whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from compiler.measure.work import NOTHING, Work, operation_named, values_of, work_of_node
from compiler.trace.records import Buffer, Graph, Kernel, MemoryPlan, Node, SchedulerNode


class GraphWork:
    """Of the kernels of one lowered graph, from its records."""

    def __init__(
        self,
        graph: Graph,
        kernels: Iterable[Kernel],
        operations: Iterable[SchedulerNode],
        plan: MemoryPlan | None,
    ) -> None:
        self._nodes = {node.name: node for node in graph.nodes}
        self._values = values_of(graph.nodes)
        self._operations = {one.name: one for one in operations}
        self._order = {name: place for place, name in enumerate(self._operations)}
        self._lives: dict[str, Buffer] = {}
        if plan is not None:
            self._lives = {buffer.name: buffer for buffer in plan.buffers}
        self._homes: dict[str, set[str]] = defaultdict(set)
        """Operation -> kernels that carry it out."""
        for kernel in kernels:
            for name in kernel.nodes:
                self._homes[name].add(kernel.id)
        self._readers: dict[str, list[str]] = defaultdict(list)
        self._whole: dict[str, int] = {}
        for one in self._operations.values():
            for name in one.reads:
                self._readers[name].append(one.name)
            for name, count in one.touched.items():
                self._whole[name] = max(count, self._whole.get(name, 0))
        for name, life in self._lives.items():
            if life.bytes is not None and not life.alias_of:
                self._whole[name] = life.bytes

    def of(self, kernel: Kernel) -> Work:
        """None of what is not known."""
        members = [
            self._operations[name]
            for name in sorted(kernel.nodes, key=lambda name: self._order.get(name, 0))
            if name in self._operations
        ]
        if kernel.language == "aten":
            return self._of_call(kernel, members)
        flops = self._flops(kernel.origins)
        if not members:
            return Work(None, None, flops)
        read: dict[str, list[int | None]] = defaultdict(list)
        written: dict[str, list[int | None]] = defaultdict(list)
        made: set[str] = set()
        for one in members:
            for name in one.reads:
                if name not in made:
                    read[name].append(one.touched.get(name))
            for name in one.writes:
                if self._leaves(name, one, kernel):
                    written[name].append(one.touched.get(name))
            made.update(one.writes)
        return Work(self._sum(read), self._sum(written), flops)

    def _sum(self, touched: dict[str, list[int | None]]) -> int | None:
        """Several operations may touch other parts of a buffer, or the same."""
        total = 0
        for name, counts in touched.items():
            known = [count for count in counts if count is not None]
            if len(known) < len(counts):
                return None
            total += min(sum(known), self._whole.get(name, sum(known)))
        return total

    def _leaves(self, name: str, operation: SchedulerNode, kernel: Kernel) -> bool:
        """Whether what an operation writes is put into memory by this kernel."""
        life = self._lives.get(name)
        homes = self._homes[operation.name]
        if life is not None and len(homes) > 1 and kernel.steps and life.first not in kernel.steps:
            return False  # computed anew: another kernel has put it there
        if life is not None and life.kind != "temporary":
            return True
        readers = self._readers.get(name, [])
        if not readers:
            return True  # it is written for the caller
        return any(not (self._homes[reader] & homes) for reader in readers)

    def _of_call(self, kernel: Kernel, members: Sequence[SchedulerNode]) -> Work:
        node = self._called(kernel)
        found = NOTHING if node is None else work_of_node(node, self._values)
        if node is None or found.read_bytes is None or found.write_bytes is None:
            flops = self._flops(kernel.origins) if node is None else found.flops
            read = [one.read_bytes for one in members]
            written = [one.write_bytes for one in members]
            return Work(_total(read), _total(written), flops)
        return found

    def _called(self, kernel: Kernel) -> Node | None:
        """The node that a call carries out; None where that is not clear."""
        nodes = [self._nodes[name] for name in kernel.origins if name in self._nodes]
        wanted = operation_named(kernel.name)
        same = [one for one in nodes if wanted and operation_named(one.target) is wanted]
        if same:
            return same[-1]
        computing = [one for one in nodes if work_of_node(one, self._values) != NOTHING]
        return computing[0] if len(computing) == 1 else None

    def _flops(self, origins: Sequence[str]) -> int | None:
        nodes = [self._nodes[name] for name in origins if name in self._nodes]
        return _total([work_of_node(node, self._values).flops for node in nodes])


def _total(values: Sequence[int | None]) -> int | None:
    """None where one is not known, or there is none."""
    known = [one for one in values if one is not None]
    return sum(known) if known and len(known) == len(values) else None
