"""A recording and torch's log of the same run, compared fact by fact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tcw.compiler.trace.records import (
    AnyRecord,
    Failure,
    FrameEnd,
    FrameStart,
    Graph,
    GraphBreak,
    Guard,
    Guards,
    Kernel,
    Node,
    Recompile,
    Record,
)
from tcw.compiler.trace.torch_logs.decoder import LogDecoder

R = TypeVar("R", bound=Record)

_UNLIKE = ("___check_torch_function_mode_stack()",)
"""Conditions of the tree that belong to no guard that torch counts."""


def read_log(log: bytes, *, chunk: int = 1 << 20) -> list[AnyRecord]:
    decoder = LogDecoder()
    records = [
        one for at in range(0, len(log), chunk) for one in decoder.feed(log[at : at + chunk])
    ]
    records += decoder.finish()
    assert not decoder.losses, decoder.losses
    return records


def all_of(kind: type[R], records: Iterable[AnyRecord]) -> list[R]:
    return [record for record in records if isinstance(record, kind)]


def frames(records: Sequence[AnyRecord]) -> list[object]:
    """How each compile began and ended."""
    starts = [
        (one.compile_id, one.attempt, one.function, one.location.file, one.resumes_at)
        for one in all_of(FrameStart, records)
    ]
    ends = [
        (one.compile_id, one.status, one.attempts, one.ops, one.guards)
        for one in all_of(FrameEnd, records)
    ]
    return [starts, ends]


def breaks(records: Sequence[AnyRecord]) -> list[object]:
    """Breaks without what a log does not hold: columns, what crosses them, our advice."""
    return [
        (
            *(one.compile_id, one.attempt, one.gb, one.type, one.context.strip(), one.outcome),
            *(_stripped(one.explanation), one.hints, one.then, one.url, one.source_line.strip()),
            *(one.location.file, one.location.line, one.location.function),
        )
        for one in all_of(GraphBreak, records)
    ]


def stacks(records: Sequence[AnyRecord]) -> list[list[tuple[str, int]]]:
    """The user's frames of each break, from the compiled one inwards."""
    return [
        [(place.file, place.line) for place in one.stack] for one in all_of(GraphBreak, records)
    ]


def _stripped(text: str) -> str:
    return "\n".join(row.rstrip() for row in text.strip().split("\n"))


def graphs(records: Sequence[AnyRecord], kinds: Sequence[str]) -> dict[str, object]:
    """Graphs node by node, without module paths and gradients, which a log does not hold."""
    return {
        one.id: (one.kind, one.compile_id, one.ops, tuple(_node(node) for node in one.nodes))
        for one in all_of(Graph, records)
        if one.kind in kinds
    }


def _node(node: Node) -> object:
    value = node.value
    described = value and (value.shape, value.dtype, value.stride, value.device, value.bytes)
    return (node.name, node.op, node.target, node.inputs, described)


def lines(records: Sequence[AnyRecord]) -> dict[tuple[str, str], tuple[str, int]]:
    """The user's line of each captured node that has one."""
    return {
        (one.id, node.name): (node.location.file, node.location.line)
        for one in all_of(Graph, records)
        if one.kind == "captured"
        for node in one.nodes
        if node.location is not None and not node.inferred and node.op.startswith("call")
    }


def guards(records: Sequence[AnyRecord]) -> dict[str, object]:
    """Of each compile: how many guards, the size of the tree, and the tensors and what they must
    be."""
    return {
        one.compile_id: (
            *(one.count, one.tree_nodes, one.function),
            {guard.source: _tensor(guard) for guard in one.guards if guard.kind == "TENSOR_MATCH"},
        )
        for one in all_of(Guards, records)
    }


def _tensor(guard: Guard) -> str:
    """What a tensor must be. Dynamic strides are not in a log, and torch may give two symbols that
    are equal one name later."""
    return re.sub(r"(?:\d+\*)?\bs\d+\b", "s", re.sub(r"stride \([^)]*\)", "stride", guard.value))


def conditions(records: Sequence[AnyRecord]) -> dict[str, set[str]]:
    """Every condition of each compile, in torch's words."""
    return {
        one.compile_id: {code.rstrip() for guard in one.guards for code in guard.code}
        for one in all_of(Guards, records)
    }


def recompiles(records: Sequence[AnyRecord]) -> list[object]:
    return [
        (
            *(one.compile_id, one.reason.strip()),
            tuple((failed.entry, failed.guard, failed.source) for failed in one.failed),
            tuple(failed.expected for failed in one.failed),
        )
        for one in all_of(Recompile, records)
    ]


def kernels(records: Sequence[AnyRecord]) -> list[object]:
    return sorted((one.graph, one.name, one.language) for one in all_of(Kernel, records))


def failures(records: Sequence[AnyRecord]) -> list[str]:
    return [one.type for one in all_of(Failure, records)]


def unlike(ours: dict[str, set[str]], theirs: dict[str, set[str]]) -> Iterator[str]:
    """Conditions that we recorded and the log's tree does not have."""
    for compile_id, codes in ours.items():
        yield from sorted(codes - theirs.get(compile_id, set()))
