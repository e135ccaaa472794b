"""Which captured nodes each step of a compiled call computes, by what a recording says.

A step is a call of a kernel; a kernel has nodes of the lowered graph, those have origins in
AOTAutograd's graph and those in Dynamo's. Two links lead nowhere: views, which compute nothing,
and a node that an earlier step has computed already (an inlined residual, a mask): what is merely
computed again belongs to the step that came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from compiler.trace.matching import base_graph
from compiler.trace.records import Graph, Kernel, Location, Node, Record, SchedulerNode

NodeRef = tuple[str, str]
"""(id of a graph, name of a node)."""

Site = tuple[str, str, int]
"""(path of the module, file, line)."""

VIEWS = frozenset(
    """_conj _reshape_alias _unsafe_view alias as_strided broadcast_to chunk detach diagonal expand
    expand_as flatten getitem getattr lift_fresh movedim narrow numel permute real reshape select
    size slice split split_with_sizes squeeze swapaxes swapdims t transpose unbind unflatten unfold
    unsafe_chunk unsafe_split unsqueeze view view_as view_as_complex view_as_real""".split()
)
"""Operations that touch no memory, or whose copy is an operation of its own once lowered."""

CREATIONS = frozenset(
    """arange empty empty_like empty_strided full full_like iota lift_fresh_copy linspace
    new_empty new_full new_ones new_zeros ones ones_like scalar_tensor zeros zeros_like""".split()
)
"""Operations that read no tensor's data: a constant that two steps share joins nothing."""


def word(target: str) -> str:
    """`aten.add.Tensor`, `torch.nn.functional.gelu`, `operator.getitem` -> `add`, `gelu`, …"""
    parts = target.split(".")
    if parts[0] in ("aten", "prims", "mkldnn", "quantized", "inductor", "_c10d_functional"):
        return parts[1] if len(parts) > 1 else parts[0]
    return parts[-1].removesuffix("_") if len(parts[-1]) > 1 else parts[-1]


def site_of(module: str, location: Location | None) -> Site | None:
    """Where something is written; None where torch recorded no line."""
    return None if location is None else (module, location.file, location.line)


@dataclass
class Step:
    """One call in a graph's code, as `GraphStep` has it."""

    graph: str
    """`0/0/forward`."""
    name: str
    occurrence: int = 0


@dataclass
class Computes:
    """What one step computes, views left out."""

    kernel: Kernel | None = None
    lowered: tuple[NodeRef, ...] = ()
    """Nodes of the lowered graph that no earlier step computes; all where it computes nothing
    else."""
    captured: frozenset[NodeRef] = frozenset()
    """Nodes of Dynamo's graphs."""
    sites: frozenset[Site] = frozenset()
    """Of lowered nodes that are known to come from no captured node, but from a line."""
    locations: tuple[Location, ...] = ()
    """Lines of the kernel, where no node of it is known."""


@dataclass
class Origins:
    """The graphs and kernels of one engine's recording."""

    records: Sequence[Record]
    _captured: dict[NodeRef, frozenset[NodeRef]] = field(default_factory=dict)

    @cached_property
    def graphs(self) -> dict[str, Graph]:
        return {one.id: one for one in self.records if isinstance(one, Graph)}

    @cached_property
    def nodes(self) -> dict[NodeRef, Node]:
        return {(id, node.name): node for id, one in self.graphs.items() for node in one.nodes}

    @cached_property
    def _operations(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Origins of a scheduler node: (graph without its last stage, name) -> lowered nodes."""
        return {
            (base_graph(one.graph), one.name): one.origins
            for one in self.records
            if isinstance(one, SchedulerNode)
        }

    @cached_property
    def _calls(self) -> dict[tuple[str, str], list[tuple[Kernel, int, int]]]:
        """(graph, name of the function) -> for each of its calls in order: the kernel, which call
        of that kernel it is, and of how many."""
        placed: dict[tuple[str, str], list[tuple[int, int, Kernel, int, int]]] = {}
        kernels = [one for one in self.records if isinstance(one, Kernel) and not one.predicted]
        for number, kernel in enumerate(kernels):
            places = kernel.steps or (kernel.step if kernel.step is not None else number,)
            calls = placed.setdefault((base_graph(kernel.graph), kernel.name), [])
            calls += [(p, number, kernel, i, len(places)) for i, p in enumerate(places)]
        return {
            key: [(kernel, i, count) for _, _, kernel, i, count in sorted(calls, key=_place)]
            for key, calls in placed.items()
        }

    def kernel(self, step: Step) -> Kernel | None:
        """The kernel that this step calls; None where no record of it is known."""
        found = self._call(step)
        return found[0] if found is not None else None

    def _call(self, step: Step) -> tuple[Kernel, int, int] | None:
        calls = self._calls.get((base_graph(step.graph), step.name), [])
        return calls[step.occurrence] if step.occurrence < len(calls) else None

    def computed(self, steps: Iterable[Step]) -> list[Computes]:
        """What each step computes; the steps in the order in which they run."""
        taken: set[NodeRef] = set()
        return [self._computes(step, taken) for step in steps]

    def _computes(self, step: Step, taken: set[NodeRef]) -> Computes:
        call = self._call(step)
        if call is None:
            return Computes()
        kernel, number, count = call
        names = self._lowered_names(kernel, number, count)
        refs = [(kernel.graph, name) for name in names]
        known = [ref for ref in refs if ref in self.nodes]
        working = [ref for ref in known if word(self.nodes[ref].target) not in VIEWS]
        # what was computed before, and constants, only where there is nothing else
        own = [ref for ref in working if ref not in taken]
        own = own or working or known
        reading = [ref for ref in own if word(self.nodes[ref].target) not in CREATIONS]
        taken.update(own)
        chosen = reading or own
        captured = frozenset[NodeRef]().union(*(self.captured(ref) for ref in chosen))
        sites = {
            site
            for ref in chosen
            if not self.captured(ref)
            and (site := site_of(self.nodes[ref].module, self.nodes[ref].location))
        }
        return Computes(kernel, tuple(chosen), captured, frozenset(sites), kernel.locations)

    def _lowered_names(self, kernel: Kernel, number: int, count: int) -> tuple[str, ...]:
        """Lowered nodes of one call of a kernel. A function that is called several times does
        equal work each time, and its scheduler nodes are recorded call by call."""
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
            self._captured[ref] = frozenset()  # a cycle would be torch's mistake
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
    """Whether a node is a call: no input, no output."""
    return node.op in ("call_function", "call_method", "call_module")


def _place(call: tuple[int, int, Kernel, int, int]) -> tuple[int, int]:
    return call[0], call[1]


def targets(origins: Mapping[NodeRef, Node], refs: Iterable[NodeRef]) -> list[str]:
    """The words of these nodes' targets."""
    return [word(origins[ref].target) for ref in refs if ref in origins]
