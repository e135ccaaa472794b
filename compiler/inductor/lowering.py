"""Lowering: the graph that Inductor lowers, and the IR of each of its nodes.

torch/_inductor/graph.py: `GraphLowering` is an FX interpreter whose `run` lowers a graph node by
node. Pointwise nodes stay lazy until a reader needs them in memory, so a node's operations are read
after the whole graph has run: an operation belongs to its origin node.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
from torch import fx

from tcw.compiler.control.hooks import (
    RecordingHook,
    Uninstall,
    around_call,
    before_call,
    patch,
    undo_all,
)
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.nodes import COMPUTING, describe_graph, node_stack, target_name
from tcw.compiler.graphs.provenance import (
    MadeNode,
    kept_lines,
    line_of_origins,
    made_in,
    replaced_names,
    replaced_node,
)
from tcw.compiler.graphs.realised import RealisedGraph, keep_realised
from tcw.compiler.inductor.lowered_graphs import Lowering, forget_lowerings, lowering_of
from tcw.compiler.trace.records import Location, Lowered, Node

_MAX_NAMES = 8


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor import compile_fx
    from torch._inductor.graph import GraphLowering

    safely = Safely(recorder, HOOK.name)
    return undo_all(
        lambda: forget_lowerings(recorder),
        *(before_call(compile_fx, name, _keep_names) for name in _PASSES),
        around_call(GraphLowering, "run", partial(_run, recorder, safely)),
        patch(GraphLowering, "run_node", _run_node(GraphLowering.run_node)),
    )


_PASSES = ("_recursive_joint_graph_passes", "_recursive_post_grad_passes")

_parents: weakref.WeakKeyDictionary[Any, frozenset[str]] = weakref.WeakKeyDictionary()
"""Node names of AOTAutograd's graphs before Inductor's first pass on them."""


def _keep_names(gm: Any, *_: Any, **__: Any) -> None:
    if gm not in _parents:
        _parents[gm] = frozenset(node.name for node in gm.graph.nodes)


_results: dict[int, dict[fx.Node, tuple[Any, list[Any]]]] = {}
"""By `id` of the `GraphLowering`: each node's (IR, operations realised during its lowering)."""


def _run_node(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_node(self: Any, n: Any, *args: Any, **kwargs: Any) -> Any:
        before = len(self.operations)
        result = original(self, n, *args, **kwargs)
        results = _results.get(id(self))
        if results is not None:
            results[n] = (result, self.operations[before:])
        return result

    return run_node


@contextmanager
def _run(recorder: Recorder, safely: Safely, graph: Any, *_: Any, **__: Any) -> Iterator[None]:
    safely(record_graph, recorder, graph)
    results = _results[id(graph)] = {}
    try:
        yield
    finally:
        _results.pop(id(graph), None)  # by the first of two recordings
    safely(_record_lowered, recorder, graph, results)
    if recorder.settings.verify:
        safely(_keep, recorder, graph, results)


def record_graph(recorder: Recorder, graph: Any) -> Lowering:
    """Record a graph that is about to be lowered, once; its lines are kept for the kernels."""
    lowering = lowering_of(recorder, graph)
    if lowering.described:
        return lowering
    described = describe_graph(
        graph.module.graph,
        id=lowering.id,
        kind="lowered",
        compile_id=lowering.compile_id,
        recorder=recorder,
        parent=lowering.parent,
    )
    known = _parents.get(graph.module)
    made = {**made_in(f"{lowering.compile_id}/joint"), **made_in(lowering.parent)}
    lines = {} if lowering.inner else kept_lines(lowering.parent)
    nodes = tuple(
        with_parents_line(with_origins(node, part, known, made, lowering), lines)
        for node, part in zip(graph.module.graph.nodes, described.nodes, strict=True)
    )
    for part in nodes:
        if part.inferred and part.location is not None:
            recorder.source(part.location.file)
        lowering.described[part.name] = part
    recorder.emit(msgspec.structs.replace(described, nodes=nodes))
    return lowering


def with_origins(
    node: fx.Node,
    described: Node,
    known: frozenset[str] | None,
    made: dict[str, MadeNode],
    lowering: Lowering,
) -> Node:
    """The node with its origins in the parent graph, and an inferred line if torch has none.

    Passes rewrite the parent in place, and its nodes (named in `known`) keep their names. A node
    that a pass added (`made`) comes from the nodes that it replaced.
    """
    kept = known is None or node.name in known
    made_node = made.get(node.name)
    if made_node is None:
        return msgspec.structs.replace(described, origins=(node.name,) if kept else ())
    origins: tuple[str, ...] = (node.name,)
    if not kept:
        names = replaced_names(made_node, made)
        origins = tuple(name for name in names if known is None or name in known)[:_MAX_NAMES]
    changes: dict[str, Any] = {"origins": origins, "made_by": made_node.by}
    source = replaced_node(made_node, described.target, made)
    if source is not None:
        original = source.meta.get("original_aten")
        if original is not None:
            lowering.originals[node.name] = original
        if described.location is None:
            stack = node_stack(source)
            changes |= {
                "location": stack[-1],
                "stack": stack if len(stack) > 1 else (),
                "inferred": True,
            }
    return msgspec.structs.replace(described, **changes)


def with_parents_line(node: Node, lines: dict[str, Location]) -> Node:
    """The node with the line of its origin in the parent graph, if it has none itself."""
    if node.location is not None or node.op not in COMPUTING:
        return node
    line = line_of_origins(node, lines)
    return node if line is None else msgspec.structs.replace(node, location=line, inferred=True)


def _record_lowered(
    recorder: Recorder, graph: Any, results: dict[fx.Node, tuple[Any, list[Any]]]
) -> None:
    lowering = lowering_of(recorder, graph)
    during = {id(made): node for node, (_, realised) in results.items() for made in realised}
    operations: dict[fx.Node, list[Any]] = {}
    for operation in graph.operations:
        origin = operation.get_origin_node() or during.get(id(operation))
        if origin is not None:
            operations.setdefault(origin, []).append(operation)
    for node, (result, _) in results.items():
        if node.op == "output":
            continue
        own = operations.get(node, [])
        recorder.emit(
            Lowered(
                graph=lowering.id,
                node=node.name,
                target=target_name(node.target),
                ir=ir_name(result),
                operations=tuple(operation.get_operation_name() for operation in own),
                fallback=fallback_reason(node, own),
            )
        )


def _keep(recorder: Recorder, graph: Any, results: dict[fx.Node, tuple[Any, list[Any]]]) -> None:
    keep_realised(recorder, realised_graph(lowering_of(recorder, graph).id, graph, results))


def ir_name(value: Any) -> str:
    """Class of the IR behind a lowering's result: `Pointwise`, `Reduction`, `View`, …"""
    if isinstance(value, (list, tuple)):
        return ", ".join(dict.fromkeys(ir_name(item) for item in value))
    for _ in range(4):
        if type(value).__name__ in ("TensorBox", "StorageBox", "ComputedBuffer"):
            value = value.data
    return type(value).__name__


def fallback_reason(node: fx.Node, operations: Iterable[Any]) -> str:
    """Why these operations are library calls, as text; "" if they are not.

    The order is that of torch/_inductor/graph.py's own decisions (`run_node`, `call_function`).
    """
    kinds = {base.__name__ for operation in operations for base in type(operation).__mro__}
    if "ExternKernel" not in kinds:
        return ""
    from torch._inductor import config, lowering
    from torch._library.utils import is_builtin

    target = node.target
    if "FallbackKernel" in kinds:
        overload = hasattr(target, "overloadpacket")
        if overload and not is_builtin(target):
            return "custom operator: Inductor has no lowering for it"
        if overload and lowering.fallback_node_due_to_unsupported_type(node):
            return "a tensor type that Inductor generates no code for"
        if "should_fallback" in node.meta:
            return "a pass asked for the eager kernel"
        if target in lowering.fallbacks:
            return "Inductor has no lowering for this operator, or always calls ATen for it"
        return "its lowering calls ATen for these arguments"
    if "ExternKernelOut" in kinds and not (config.max_autotune or config.max_autotune_gemm):
        return "left to the library: templates are tried only with max_autotune"
    return "left to the library"


def realised_graph(
    id: str, graph: Any, results: Mapping[fx.Node, tuple[Any, Sequence[Any]]]
) -> RealisedGraph:
    """The buffers that hold the values of a `GraphLowering` after its `run`: of each node whose
    `TensorBox` holds a buffer directly, not a view of one. `results`: the result of each node's
    lowering, and the operations realised during it."""
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
        operation
        for operation in operations
        if (written := operation.get_mutation_names()) and (in_place or place in written)
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


_GRAPH = "torch._inductor.graph:GraphLowering"

HOOK = RecordingHook(
    name="lowering",
    offers="the graph that Inductor lowers, and the IR of each of its nodes",
    needs=(
        f"{_GRAPH}.run",
        f"{_GRAPH}.run_node",
        *(f"torch._inductor.compile_fx:{name}(gm)" for name in _PASSES),
        "torch._inductor.lowering:fallbacks",
        "torch._inductor.lowering:fallback_node_due_to_unsupported_type",
        "torch._library.utils:is_builtin",
    ),
    install=install,
    stage="lowering",
    test="inductor/test_lowering.py",
)
