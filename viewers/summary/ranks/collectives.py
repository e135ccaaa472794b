"""The collective operations that a process starts, in and outside compiled graphs, in order.

Of a graph: Inductor's final schedule where it was recorded, else the graph's nodes. What DDP's
reducer starts is foretold by its buckets: one all-reduce each, in the backward.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import (
    AnyRecord,
    Collective,
    Collectives,
    DdpBuckets,
    EagerCollective,
    FrameEnd,
    Graph,
    Node,
    TensorMeta,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.place import Place, place_of
from tcw.viewers.words import bytes_text, plural, tensor_text

Where = Literal["graph", "ddp", "eager"]

_OPERATION = re.compile(
    r"(?:^|\.)(?:_c10d_functional(?:_autograd)?|_dtensor|c10d)\.(?P<name>\w+?)_?(?:\.\w+)?$"
)
_GROUP = re.compile(r"group_name='([^']*)'")
_TIME_IN_FRAME = 0.5
"""Between the record of a frame's end and the next one."""


@dataclass(frozen=True)
class Started:
    """A collective operation."""

    operation: str
    """`all_reduce`."""
    tensors: tuple[TensorMeta, ...]
    where: Where
    order: float
    """Its place among the records."""
    place: Place | None = None
    compile_id: str = ""
    graph: str = ""
    ranks: int = 0
    """Of its group; 0 if that is not known."""
    bucket: int = 0
    """Of DDP."""
    count: int = 0
    """The n-th that is like this, outside graphs."""
    wait: Collective | None = None
    """The wait for it in the schedule of the same graph."""

    @property
    def bytes(self) -> int | None:
        sizes = [tensor.bytes for tensor in self.tensors if tensor.bytes is not None]
        return sum(sizes) if len(sizes) == len(self.tensors) and sizes else None

    @property
    def key(self) -> Hashable:
        """Equal where two ranks do the same."""
        sizes = tuple((tensor.shape, tensor.dtype) for tensor in self.tensors)
        return self.operation, sizes, self.bucket

    @property
    def words(self) -> str:
        """`all_reduce f32 8×8`, `all_reduce of DDP's bucket 1 (1.0 MB)`."""
        if self.bucket:
            return f"{self.operation} of DDP's bucket {self.bucket} ({bytes_text(self.bytes)})"
        if len(self.tensors) == 1:
            return f"{self.operation} {tensor_text(self.tensors[0])}"
        if not self.tensors:
            return self.operation
        total = bytes_text(self.bytes)
        return f"{self.operation} of {plural(len(self.tensors), 'tensor')} ({total})"


def operation_name(target: str) -> str:
    """`all_reduce` of `torch.ops._c10d_functional.all_reduce_.default`; "" for another operation,
    and for `wait_tensor`."""
    match = _OPERATION.search(target)
    return "" if match is None or match["name"] == "wait_tensor" else match["name"]


def started(recording: Recording) -> tuple[Started, ...]:
    """All collectives; those of a compiled graph once, at its compile."""
    scheduled = {
        base_graph(collectives.graph)
        for collectives in recording.all(Collectives)
        if collectives.graph
    }
    traced = {graph.compile_id for graph in recording.all(Graph) if graph.kind in _HALVES}
    found: list[Started] = []
    for order, record in enumerate(recording.records):
        found += _of(record, order, recording, scheduled, traced)
    return tuple(sorted(found, key=lambda one: one.order))


_HALVES = ("forward", "backward", "inference")


def _of(
    record: AnyRecord, order: int, recording: Recording, scheduled: set[str], traced: set[str]
) -> Iterator[Started]:
    if isinstance(record, Collectives):
        yield from _scheduled(record, order, recording)
    elif isinstance(record, EagerCollective):
        yield Started(
            operation=record.operation,
            tensors=record.tensors,
            where="eager",
            order=order,
            place=place_of(recording, record.location),
            ranks=record.ranks,
            count=record.count,
        )
    elif isinstance(record, DdpBuckets):
        yield from _reduced(record, recording, order)
    elif isinstance(record, Graph):
        whole = record.kind == "captured" and record.compile_id not in traced
        if whole or (record.kind in _HALVES and record.id not in scheduled):
            for node in record.nodes:
                if name := operation_name(node.target):
                    yield _node(node, name, record, order, recording)


def _scheduled(record: Collectives, order: int, recording: Recording) -> Iterator[Started]:
    waits = {
        collective.waits_for: collective
        for collective in record.details
        if collective.waits_for is not None
    }
    nodes = _nodes_of(record, recording)
    for at, operation in enumerate(record.operations):
        name = operation_name(operation)
        if not name:
            continue
        detail = record.details[at] if at < len(record.details) else next(nodes, Collective())
        yield Started(
            operation=name,
            tensors=detail.tensors,
            where="graph",
            order=order + at / (len(record.operations) + 1),
            place=place_of(recording, detail.location),
            compile_id=record.compile_id,
            graph=record.graph,
            wait=waits.get(at),
        )


def _nodes_of(record: Collectives, recording: Recording) -> Iterator[Collective]:
    """Sizes and lines of a schedule that has none (a log's), from the nodes of its graph; nothing
    if Inductor has joined or moved operations."""
    graph = recording.graphs.get(base_graph(record.graph))
    named = [(node, operation_name(node.target)) for node in (graph.nodes if graph else ())]
    found = [(node, name) for node, name in named if name]
    scheduled = [name for operation in record.operations if (name := operation_name(operation))]
    if graph is not None and not record.details and scheduled == [name for _, name in found]:
        for node, _ in found:
            yield Collective(tensors=_inputs(node, graph), location=node.location)


def _reduced(record: DdpBuckets, recording: Recording, order: int) -> Iterator[Started]:
    """DDP reduces the gradients of a bucket when the backward has them all."""
    ends = (
        at
        for at, one in enumerate(recording.records)
        if isinstance(one, FrameEnd) and one.compile_id == record.compile_id
    )
    after = next(ends, order) + _TIME_IN_FRAME
    for bucket in record.buckets:
        if not bucket.bytes:
            continue
        yield Started(
            operation="all_reduce",
            tensors=(TensorMeta(shape=(), dtype="", bytes=bucket.bytes),),
            where="ddp",
            order=after + bucket.number / (len(record.buckets) + 1) / 2,
            place=place_of(recording, bucket.first),
            compile_id=record.compile_id,
            bucket=bucket.number,
        )


def _node(node: Node, name: str, graph: Graph, order: int, recording: Recording) -> Started:
    return Started(
        operation=name,
        tensors=_inputs(node, graph),
        where="graph",
        order=order + graph.nodes.index(node) / (len(graph.nodes) + 1),
        place=place_of(recording, node.location),
        compile_id=graph.compile_id,
        graph=graph.id,
    )


def _inputs(node: Node, graph: Graph) -> tuple[TensorMeta, ...]:
    values = {one.name: one.value for one in graph.nodes if one.name in node.inputs}
    return tuple(value for name in node.inputs if (value := values.get(name)) is not None)


def without_group(arguments: str) -> str:
    """Arguments of a node without the name of a process group, which is another on each rank."""
    return _GROUP.sub("group_name=''", arguments)
