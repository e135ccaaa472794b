"""Which captured nodes each step of a compiled call computes, according to a recording.

A step is a call of a kernel. A kernel has nodes of the lowered graph, which have origins in
AOTAutograd's graph, which in turn have origins in Dynamo's. Two kinds of links are not followed:
views, which compute nothing, and nodes that an earlier step has already computed (an inlined
residual, a mask). A recomputed node belongs to the step that computed it first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from tcw.compiler.measure.probes.steps import GraphStep, kernel_of_steps
from tcw.compiler.measure.regions.alignment import words
from tcw.compiler.measure.work.kernel_work import GraphWork
from tcw.compiler.measure.work.operations import VIEWS, Work
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import (
    Graph,
    Kernel,
    Location,
    MemoryPlan,
    Node,
    Record,
    SchedulerNode,
)

NodeRef = tuple[str, str]
"""(id of a graph, name of a node)."""

R = TypeVar("R", Kernel, SchedulerNode, MemoryPlan)

Site = tuple[str, str, int]
"""(path of the module, file, line)."""

CREATIONS = words(
    """arange empty empty_like empty_strided full full_like iota lift_fresh_copy linspace
    new_empty new_full new_ones new_zeros ones ones_like scalar_tensor zeros zeros_like"""
)
"""Operations that read no tensor data: a constant shared by two steps does not join them."""

_NAMESPACES = words("aten prims mkldnn mkl quantized inductor _c10d_functional")


def word(target: str) -> str:
    """`aten.add.Tensor`, `torchvision.nms.default`, `torch.nn.functional.gelu`, `operator.getitem`
    -> `add`, `nms`, `gelu`, …"""
    parts = target.removeprefix("torch.ops.").split(".")
    operator = parts[0] in _NAMESPACES or parts[-1] == "default" or target.startswith("torch.ops.")
    if operator and parts[0] != "higher_order":
        return parts[1] if len(parts) > 1 else parts[0]
    return parts[-1].removesuffix("_") if len(parts[-1]) > 1 else parts[-1]


def site_of(module: str, location: Location | None) -> Site | None:
    """The site of an operation; only the module for operations of torch's own modules, such as an
    `nn.Sequential`; None if neither module nor line is known."""
    if location is None:
        return (module, "", 0) if module else None
    return (module, location.file, location.line)


@dataclass(frozen=True)
class CallOfKernel:
    """One call of a kernel."""

    kernel: Kernel
    number: int = 0
    """The index of this call among the kernel's calls, from 0."""
    count: int = 1
    """The number of the kernel's calls."""


@dataclass
class Computes:
    """What one step computes, without views."""

    kernel: Kernel | None = None
    lowered: tuple[NodeRef, ...] = ()
    """Nodes of the lowered graph that no earlier step computes; all of them if it computes nothing
    else."""
    sites: frozenset[Site] = frozenset()
    """Sites of lowered nodes that have a line but come from no captured node."""
    locations: tuple[Location, ...] = ()
    """Lines of the kernel, or of the users of its results if none of its nodes is known."""


@dataclass
class Origins:
    """The graphs and kernels of one engine's recording."""

    records: Sequence[Record]
    _captured: dict[NodeRef, frozenset[NodeRef]] = field(default_factory=dict)
    _work: dict[str, GraphWork | None] = field(default_factory=dict)

    @cached_property
    def graphs(self) -> dict[str, Graph]:
        return {record.id: record for record in self.records if isinstance(record, Graph)}

    @cached_property
    def nodes(self) -> dict[NodeRef, Node]:
        return {(id, node.name): node for id, graph in self.graphs.items() for node in graph.nodes}

    @cached_property
    def _operations(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Origins of scheduler nodes: (graph without its last stage, name) -> lowered nodes."""
        return {
            (base_graph(record.graph), record.name): record.origins
            for record in self.records
            if isinstance(record, SchedulerNode)
        }

    def calls(self, graph: str, steps: Sequence[GraphStep]) -> dict[int, CallOfKernel]:
        """Index of each step of a graph -> its kernel call, if recorded."""
        kernels = [
            record
            for record in self.records
            if isinstance(record, Kernel)
            and not record.predicted
            and base_graph(record.graph) == graph
        ]
        by_id = {kernel.id: kernel for kernel in kernels}
        found = kernel_of_steps(steps, kernels)
        counts = Counter(found.values())
        seen: Counter[str] = Counter()
        calls: dict[int, CallOfKernel] = {}
        for step in steps:
            id = found.get(step.index)
            if id is not None:
                calls[step.index] = CallOfKernel(by_id[id], seen[id], counts[id])
                seen[id] += 1
        return calls

    def work(self, call: CallOfKernel) -> Work:
        """Bytes and FLOPs of one call of a kernel."""
        graph = call.kernel.graph
        if graph not in self._work:
            self._work[graph] = self._graph_work(graph)
        graph_work = self._work[graph]
        every = graph_work.of(call.kernel) if graph_work is not None else ()
        if len(every) == call.count:
            return every[call.number]
        return every[0] if len(every) == 1 and call.count == 1 else Work()

    def _graph_work(self, id: str) -> GraphWork | None:
        graph = self.graphs.get(id)
        if graph is None:
            return None

        def of_graph(kind: type[R]) -> list[R]:
            return [
                record for record in self.records if isinstance(record, kind) and record.graph == id
            ]

        plans = of_graph(MemoryPlan)
        kernels = [kernel for kernel in of_graph(Kernel) if not kernel.predicted]
        return GraphWork(graph, kernels, of_graph(SchedulerNode), plans[-1] if plans else None)

    def computed(self, calls: Iterable[CallOfKernel | None]) -> list[Computes]:
        """What each step computes; pass the steps in execution order."""
        taken: set[NodeRef] = set()
        parts: set[tuple[str, str]] = set()
        return [
            Computes() if call is None else self._computes(call, taken, parts) for call in calls
        ]

    def _computes(
        self, call: CallOfKernel, taken: set[NodeRef], parts: set[tuple[str, str]]
    ) -> Computes:
        """`taken`: what earlier steps compute. `parts`: their scheduler nodes."""
        kernel = call.kernel
        names = self._lowered_names(kernel, call.number, call.count)
        further = self._further_parts(kernel, parts)
        refs = [(kernel.graph, name) for name in names]
        known = [ref for ref in refs if ref in self.nodes]
        working = [ref for ref in known if word(self.nodes[ref].target) not in VIEWS]
        # earlier computed nodes and constants count only if there is nothing else
        own = [ref for ref in working if ref not in taken or ref in further]
        own = own or working or known
        reading = [ref for ref in own if word(self.nodes[ref].target) not in CREATIONS]
        taken.update(own)
        chosen = reading or own
        sites = {site for ref in chosen if not self.captured(ref) and (site := self._site(ref))}
        lines = kernel.locations
        if not lines and not sites and not any(map(self.captured, chosen)):
            lines = self._users_lines(refs)
        return Computes(kernel, tuple(chosen), frozenset(sites), lines)

    def _further_parts(self, kernel: Kernel, parts: set[tuple[str, str]]) -> set[NodeRef]:
        """Nodes of which the kernel computes another part than the steps before it: a scatter is
        one scheduler node that fills its result, which may be in a kernel of its own, and one that
        adds to it."""
        graph = base_graph(kernel.graph)
        mine = {(graph, name) for name in kernel.nodes}
        further_parts = {
            (kernel.graph, self._operations[part][0])
            for part in mine - parts
            if len(self._operations.get(part, ())) == 1
        }
        parts |= mine
        return further_parts

    def _site(self, ref: NodeRef) -> Site | None:
        """The site of a node. To a sum of gradients torch gives a line and no module: it has the
        module of the summand that is added last, as in eager."""
        node = self.nodes[ref]
        given = (self.nodes.get((ref[0], name)) for name in reversed(node.inputs))
        modules = (one.module for one in given if one is not None and one.module)
        return site_of(node.module or next(modules, ""), node.location)

    def _users_lines(self, refs: Iterable[NodeRef]) -> tuple[Location, ...]:
        """The lines of the users of nodes that have none themselves: no user writes a copy into
        another layout, which belongs to the library call that needs it."""
        users = [user for ref in refs for user in self._users.get(ref, ())]
        asking = [user for user in users if user in self._library_calls] or users
        locations = (self.nodes[user].location for user in asking)
        return tuple(dict.fromkeys(location for location in locations if location is not None))

    @cached_property
    def _library_calls(self) -> set[NodeRef]:
        """Lowered nodes that a library call computes."""
        return {
            (record.graph, origin)
            for record in self.records
            if isinstance(record, Kernel) and not record.generated
            for origin in record.origins
        }

    @cached_property
    def _users(self) -> dict[NodeRef, list[NodeRef]]:
        found: dict[NodeRef, list[NodeRef]] = defaultdict(list)
        for (graph, name), node in self.nodes.items():
            for given in node.inputs:
                found[graph, given].append((graph, name))
        return found

    def _lowered_names(self, kernel: Kernel, number: int, count: int) -> tuple[str, ...]:
        """Lowered nodes of one call of a kernel. A function called several times does equal work
        each time, and its scheduler nodes are recorded call by call."""
        nodes = kernel.nodes
        if count > 1 and nodes and len(nodes) % count == 0:
            size = len(nodes) // count
            nodes = nodes[number * size : (number + 1) * size]
            graph = base_graph(kernel.graph)
            found: dict[str, None] = {}
            for node in nodes:
                found |= dict.fromkeys(self._operations.get((graph, node), ()))
            if found:
                return tuple(found)
        return kernel.origins

    def captured(self, ref: NodeRef) -> frozenset[NodeRef]:
        """The nodes of Dynamo's graph that a node was made from."""
        known = self._captured.get(ref)
        if known is None:
            self._captured[ref] = frozenset()  # guards against a cycle, a torch error
            known = self._captured[ref] = self._find_captured(ref)
        return known

    def _find_captured(self, ref: NodeRef) -> frozenset[NodeRef]:
        graph = self.graphs.get(ref[0])
        node = self.nodes.get(ref)
        if graph is None or node is None:
            return frozenset()
        if not graph.parent:
            return frozenset((ref,)) if graph.kind == "captured" and computes(node) else frozenset()
        return frozenset[NodeRef]().union(
            *(self.captured((graph.parent, origin)) for origin in node.origins)
        )

    def captured_nodes(self, compile_ids: Iterable[str]) -> list[NodeRef]:
        """All computing nodes of Dynamo's graphs with these ids, in order."""
        return [
            (id, node.name)
            for id in compile_ids
            if id in self.graphs
            for node in self.graphs[id].nodes
            if computes(node)
        ]


def computes(node: Node) -> bool:
    """Whether a node is a call, not an input or output."""
    return node.op in ("call_function", "call_method", "call_module")
