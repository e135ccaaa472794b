"""The buffers that hold the values of a graph that Inductor lowered.

Lowering a node returns a `TensorBox` (torch/_inductor/ir.py). Once the whole graph has run, a box
that holds a buffer directly stands for that buffer. A box that holds a view of a buffer is not
resolved here, and a value that was never realised has no place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx

from tcw.compiler.graphs.realised import RealisedGraph


def realised_graph(
    id: str, graph: Any, results: Mapping[fx.Node, tuple[Any, Sequence[Any]]]
) -> RealisedGraph:
    """`graph`: the `GraphLowering` after its `run`. `results`: the result of each node's lowering,
    and the operations realised during it."""
    found = RealisedGraph(id, graph.module)
    makers: dict[str, str] = {}
    for operation in graph.operations:
        name = operation.get_operation_name()
        buffers = tuple(output.get_name() for output in operation.get_outputs())
        found.operations[name] = buffers
        kinds = _kinds(operation)
        if "ConcatKernel" in kinds:
            pieces = tuple(piece.get_name() for piece in operation.inputs)
            found.pieces.update(dict.fromkeys(buffers, pieces))
        elif "MultiOutput" in kinds:
            maker = makers.get(operation.inputs[0].get_name(), name)
            if maker != name:
                found.operations[maker] += buffers
                name = maker
        makers.update(dict.fromkeys(buffers, name))
        for target in operation.get_mutation_names():
            found.memory.update((buffer, target) for buffer in buffers if buffer != target)
    for node, (result, operations) in results.items():
        if node.op != "output":
            place = _written_by(node, _place(result), operations)
            if place:
                found.places[node] = place
    return found


def _written_by(node: fx.Node, place: str, operations: Sequence[Any]) -> str:
    """The buffer that stands for what a node writes in place, including memory that the node's own
    lowering allocates and then writes, as scatters do. `place` if it writes nothing."""
    schema = getattr(node.target, "_schema", None)
    in_place = schema is not None and schema.is_mutable
    writing = [
        one
        for one in operations
        if (written := one.get_mutation_names()) and (in_place or place in written)
    ]
    outputs = writing[-1].get_outputs() if writing else ()
    if outputs:
        return str(outputs[0].get_name())
    return "" if in_place else place


def _place(result: Any) -> str:
    if type(result).__name__ != "TensorBox" or type(result.data).__name__ != "StorageBox":
        return ""
    buffer = result.data.data
    return str(buffer.get_name()) if "Buffer" in _kinds(buffer) else ""


def _kinds(ir: Any) -> set[str]:
    return {base.__name__ for base in type(ir).__mro__}
