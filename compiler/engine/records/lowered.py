"""Records of lowering: the lowered graph, the result for each node, the operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod

import msgspec
from torch import fx

from tcw.compiler.engine.records.compiled import GraphState, Operation
from tcw.compiler.engine.records.nest_lines import nest_lines, record_size
from tcw.compiler.graphs.labels import copy_label, node_label
from tcw.compiler.graphs.nodes import COMPUTING, describe_graph, target_name
from tcw.compiler.graphs.provenance import copied_origins, forget_made, kept_lines, made_in
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Gather, Load, Op, walk
from tcw.compiler.loops.graph import (
    Buffer,
    Call,
    Graph,
    Input,
    Map,
    Reduce,
    Result,
    Scan,
    Store,
    extent,
    reads,
)
from tcw.compiler.loops.layouts import Shape, View
from tcw.compiler.loops.sizes import Size
from tcw.compiler.trace import records
from tcw.compiler.trace.records import Lowered, Record, SchedulerNode

Value = Input | Map | Reduce | Scan | Buffer | Result
Parts = dict[object, int]
"""Parts of values that operations access, numbered from 1."""


def graph_record(compiled: GraphState, module: fx.GraphModule) -> records.Graph:
    """The graph that our compiler receives: AOTAutograd's, node by node."""
    described = describe_graph(
        module.graph,
        id=compiled.id,
        kind="lowered",
        compile_id=compiled.compile_id,
        recorder=compiled.recorder,
        parent=compiled.base,
        origins=copied_origins(compiled.parents),
    )
    lines, made = kept_lines(compiled.base), made_in(compiled.base)
    nodes = []
    for node in described.nodes:
        line = lines.get(node.name) if node.location is None and node.op in COMPUTING else None
        if line is not None:
            node = msgspec.structs.replace(node, location=line, inferred=True)
        if node.name in made:
            node = msgspec.structs.replace(node, made_by=made[node.name].by)
        nodes.append(node)
        compiled.described[node.name] = node
    forget_made(compiled.base)
    whole: records.Graph = msgspec.structs.replace(described, nodes=tuple(nodes))
    return whole


def lowered_records(compiled: GraphState, graph: Graph) -> Iterator[Record]:
    """One `Lowered` per node, then one `SchedulerNode` per operation."""
    compiled.take(graph)
    made: dict[str, list[str]] = {}
    for name, operation in compiled.operations.items():
        for origin in operation.origins[-1:]:
            made.setdefault(origin, []).append(name)
    inputs = {node.name for node in graph.nodes if isinstance(node, Input)}
    for name, node in compiled.nodes.items():
        if node.op == "output":
            continue
        own = [compiled.operations[one] for one in made.get(name, ())]
        kinds = dict.fromkeys(type(one).__name__ for one in own)
        lazy = "Input" if node.op == "placeholder" or name in inputs else "View"
        yield Lowered(
            graph=compiled.id,
            node=name,
            target=target_name(node.target),
            ir=", ".join(kinds) or lazy,
            operations=tuple(made.get(name, ())),
            fallback="; ".join(one.reason for one in own if isinstance(one, Call) and one.reason),
        )
    values = graph.values()
    parts = Counter(operation.origins for operation in compiled.operations.values())
    for name, operation in compiled.operations.items():
        one_of_several = parts[operation.origins] > 1
        yield _scheduler_node(compiled, values, name, operation, one_of_several)


def _scheduler_node(
    compiled: GraphState,
    values: dict[str, Value],
    name: str,
    operation: Operation,
    one_of_several: bool,
) -> SchedulerNode:
    """`one_of_several`: an ATen node became several loops, as a softmax does: each is then named
    by the value that it computes."""
    origins = compiled.in_order(operation.origins)
    label = node_label(compiled.nodes[origin] for origin in origins)
    if one_of_several:
        label = operation.name
    sources = sources_of(operation)
    targets = targets_of(operation)
    bytes_of, parts = bytes_touched(operation, values, compiled.parts)
    domain: tuple[Size, ...] = ()
    if not isinstance(operation, Call):
        domain = operation.domain
        if isinstance(operation, Reduce):
            away = zip(operation.domain, operation.reduced, strict=True)
            domain = (*operation.kept, *(size for size, gone in away if gone))
        if is_copy(operation):
            label = copy_label(label)
    return SchedulerNode(
        graph=compiled.id,
        name=name,
        kind=kind_of(operation),
        origins=origins,
        label=label or operation.name,
        domain=tuple(record_size(size) for size in domain),
        reads=sources,
        writes=targets,
        read_bytes=_sum(bytes_of, sources),
        write_bytes=_sum(bytes_of, targets),
        touched=bytes_of,
        parts=parts,
        nest=() if isinstance(operation, Call) else nest_lines(operation),
    )


def kind_of(operation: Operation) -> str:
    """The operation's kind, in Inductor's terms if it has one."""
    if isinstance(operation, Call):
        return "extern"
    if isinstance(operation, Map):
        return "pointwise"
    return type(operation).__name__.lower().replace("reduce", "reduction")


def is_copy(operation: Map | Reduce | Scan | Store) -> bool:
    """Whether the operation only moves or converts data."""
    plain = all(
        part.name == "convert" for part in walk(operation.expression) if isinstance(part, Op)
    )
    return isinstance(operation, (Map, Store)) and plain


def sources_of(operation: Operation) -> tuple[str, ...]:
    """The values that an operation reads, in order, without duplicates."""
    if isinstance(operation, Call):
        return tuple(dict.fromkeys(operand.value for operand in operation.operands()))
    return tuple(dict.fromkeys(load.value for load in reads(operation)))


def targets_of(operation: Operation) -> tuple[str, ...]:
    """The values that an operation creates or writes."""
    if isinstance(operation, Call):
        made = [result.name for result in operation.results if result is not None]
        return tuple(dict.fromkeys([*made, *operation.mutates]))
    return (operation.buffer,) if isinstance(operation, Store) else (operation.name,)


def _sum(bytes_of: Mapping[str, int], names: tuple[str, ...]) -> int | None:
    return sum(bytes_of[name] for name in names) if bytes_of.keys() >= set(names) else None


def bytes_touched(
    operation: Operation, values: Mapping[str, Value], parts: Parts
) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of each value that an operation reads or writes, and the part if it is not the whole.

    A view counts only what it shows, a gather at most the elements that it gathers, and never more
    than the value has. Values that are symbolic or have a dtype without loops are left out.
    """
    counts: dict[str, dict[object, int | None]] = {}

    def take(value: str, place: object, count: int | None) -> None:
        counts.setdefault(value, {})[place] = count

    if isinstance(operation, Call):
        for operand in operation.operands():
            shown = (operand.shape, operand.strides, operand.offset)
            take(operand.value, shown, _distinct(operand.shape, operand.strides))
        for result in operation.results:
            if result is not None:
                take(result.name, "made", _number(extent(result)))
        for name in operation.mutates:
            take(name, "mutated", _number(extent(values[name])) if name in values else None)
    else:
        size = _product(operation.domain)
        for load in reads(operation):
            terms = load.terms if isinstance(load, Gather) else ()
            take(load.value, (load.view, terms), size if terms else _shown(load, size))
        if isinstance(operation, Store):
            # an upper bound, since several elements may hit one place
            take(operation.buffer, "stored", size)
        else:
            take(operation.name, "made", _number(extent(operation)))
    found: dict[str, int] = {}
    which: dict[str, int] = {}
    for name, places in counts.items():
        value = values.get(name)
        if value is None or value.dtype not in BYTES:
            continue
        whole = _number(extent(value))
        known = [count for count in places.values() if count is not None]
        if whole is None or len(known) < len(places):
            continue
        count = min(whole, sum(known))
        found[name] = count * BYTES[value.dtype]
        if count < whole:
            part = (name, frozenset(places))
            which[name] = parts.setdefault(part, len(parts) + 1)
    return found, which


def _shown(load: Load | Gather, size: int | None) -> int | None:
    """The number of elements of a value that a view shows."""
    return None if size is None else min(size, *_images(load.view), size)


def _images(view: View) -> list[int]:
    found = [_distinct(layout.shape, layout.strides) for layout in view]
    return [count for count in found if count is not None]


def _distinct(shape: Shape, strides: tuple[Size, ...]) -> int | None:
    return _product(tuple(s for s, stride in zip(shape, strides, strict=True) if stride != 0))


def _product(sizes: Shape) -> int | None:
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def _number(size: Size) -> int | None:
    return size if isinstance(size, int) else None
