"""The fusion groups of a graph, as it is drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from compiler.trace.records import FusionGroups, Graph, Kernel
from viewers.panes.names import is_view
from viewers.panes.view import View


@dataclass
class Group:
    """A fusion group of the lowered graph."""

    name: str
    nodes: tuple[str, ...]
    label: str
    kernel: Kernel | None
    alone: bool
    """Its kernel has no other group."""


def groups_of(view: View, graph: Graph) -> list[Group]:
    """The groups that fusion ended with, in the order of the schedule."""
    kernels = [k for k in view.facts.kernels_of.get(graph.compile_id, []) if k.graph == graph.id]
    of_operation: dict[str, Kernel] = {}
    for kernel in sorted(kernels, key=lambda kernel: kernel.predicted != view.predicted):
        for operation in kernel.nodes:
            of_operation.setdefault(operation, kernel)
    last = [record for record in view.recording.all(FusionGroups) if record.graph == graph.id]
    if last:
        found = [(group.name, group.nodes, group.label) for group in last[-1].groups]
    else:
        found = [(kernel.id, kernel.nodes, kernel.label) for kernel in kernels if kernel.nodes]
    held: Counter[str] = Counter()
    for _, nodes, _ in found:
        held.update({of_operation[n].id for n in nodes if n in of_operation})
    groups = []
    for name, nodes, label in found:
        chosen = next((of_operation[n] for n in nodes if n in of_operation), None)
        groups.append(Group(name, nodes, label, chosen, chosen is None or held[chosen.id] == 1))
    return groups


def group_of_nodes(view: View, graph: Graph, groups: list[Group]) -> dict[str, Group]:
    """Name of a node -> its group. What several groups compute again stands in the first; a view
    that several look through is in none."""
    operations = view.facts.operations
    nodes = view.facts.nodes(graph.id)
    found: dict[str, Group] = {}
    shared: set[str] = set()
    for group in groups:
        for operation in group.nodes:
            record = operations.get((graph.id, operation))
            for origin in record.origins if record else ():
                before = found.setdefault(origin, group)
                if before is not group and origin in nodes and is_view(nodes[origin]):
                    shared.add(origin)
    return {name: group for name, group in found.items() if name not in shared}
