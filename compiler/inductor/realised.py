"""Where the values of a graph that Inductor lowered lie in memory.

The lowering of a node answers a `TensorBox` (torch/_inductor/ir.py). When the whole graph has run,
one that holds a buffer directly is that buffer; one through views of it is not told apart here, and
what was never realised has no place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx

from compiler.graphs.realised import Place, RealisedGraph


def realised_graph(
    id: str, graph: Any, results: Mapping[fx.Node, tuple[Any, Sequence[Any]]]
) -> RealisedGraph:
    """`graph`: the `GraphLowering` after its `run`. `results`: what each node's lowering answered,
    and the operations that were realised meanwhile."""
    found = RealisedGraph(id, graph.module)
    for operation in graph.operations:
        names = tuple(output.get_name() for output in operation.get_outputs())
        found.operations[operation.get_operation_name()] = names
        for target in operation.get_mutation_names():
            found.memory.update((name, target) for name in names if name != target)
    for node, (answer, operations) in results.items():
        if node.op == "output":
            continue
        place = _written_by(node, operations) or _place(answer)
        if place is not None:
            found.places[node] = place
    return found


def _written_by(node: fx.Node, operations: Sequence[Any]) -> Place | None:
    """The buffer that stands for what a node writes in place."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return None
    writing = [one for one in operations if one.get_mutation_names()]
    outputs = writing[-1].get_outputs() if writing else ()
    return Place(outputs[0].get_name()) if outputs else None


def _place(answer: Any) -> Place | None:
    if type(answer).__name__ != "TensorBox" or type(answer.data).__name__ != "StorageBox":
        return None
    buffer = answer.data.data
    kinds = {base.__name__ for base in type(buffer).__mro__}
    if "Buffer" not in kinds:
        return None
    if "MultiOutput" not in kinds:
        return Place(buffer.get_name())
    if any(kind not in (list, tuple) for kind, _ in buffer.indices):
        return None
    source = buffer.inputs[0].get_name()
    return Place(source, tuple(position for _, position in buffer.indices))
