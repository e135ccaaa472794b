"""Operations that only one of two captured graphs has, or that compute in another dtype."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine, matched_line
from tcw.viewers.summary.ranks.graphs import input_name
from tcw.viewers.words import shape_text

OperationChangeKind = Literal[
    "new", "gone", "dtype", "value", "inputs", "input dtype", "input shape",
    "module", "module new", "module gone", "many new", "many gone",
]  # fmt: skip


@dataclass(frozen=True)
class OperationChange:
    """One node of a captured graph, or all nodes of a module (`by_module`)."""

    kind: OperationChangeKind
    graph: str
    operation: str
    """`softmax`, `mylib::scale`; the name of an input or of a module."""
    line: MatchedLine | None
    """Where the run has it, or the base's line if it is gone."""
    before: str = ""
    after: str = ""
    """Of `dtype` and `input dtype`: the dtypes; of `value`: the constants; of `input shape`: the
    shapes. Of `inputs`: the names that only the base reads, and only the run. Of a module: its
    operations."""
    module: str = ""
    """The path of the module that it ran in."""
    weight: bool = False
    """Of an input: whether it is a parameter or a buffer."""
    bytes: int = 0
    """Of what it computes."""
    alike: int = 1
    """Inputs that changed with it."""

    @property
    def telling(self) -> bool:
        """Whether it says more than that an operation was written or deleted."""
        return self.kind not in ("new", "gone") or "::" in self.operation

    @property
    def gone(self) -> bool:
        return self.kind.endswith("gone")


def operation_changes(alignment: Alignment, whole: bool = False) -> tuple[OperationChange, ...]:
    """In graph order. A dtype that follows from the operand before it is not another change.
    `whole`: of all graphs as one, for recordings whose graphs are cut elsewhere."""
    base, run = (_captured(side, whole) for side in (alignment.base, alignment.run))
    return tuple(
        change
        for id, graph in base.items()
        if (other := run.get(id)) is not None
        for change in _of_graphs(id, graph, other, alignment, whole)
    )


def _captured(recording: Recording, whole: bool) -> dict[str, Graph]:
    """By id; as one, the first compile of each frame."""
    graphs = {id: one for id, one in recording.graphs.items() if one.kind == "captured"}
    if not whole or not graphs:
        return graphs
    nodes = [
        structs.replace(
            node,
            name=f"{one.id} {node.name}",
            inputs=tuple(f"{one.id} {name}" for name in node.inputs),
        )
        for one in graphs.values()
        if one.compile_id.endswith("/0")
        for node in one.nodes
        if _computes(node)
    ]
    first = next(iter(graphs.values()))
    return {"": structs.replace(first, id="", nodes=tuple(nodes))}


def _of_graphs(
    id: str, graph: Graph, other: Graph, alignment: Alignment, whole: bool
) -> Iterator[OperationChange]:
    same = alignment.aligned(graph, other) if whole else alignment.nodes(id)
    back = {new: old for old, new in same.items()}
    old = {node.name: node for node in graph.nodes}
    widened: set[str] = set()
    for node in other.nodes:
        before = old.get(back.get(node.name, ""))
        line = matched_line(node.location)
        if before is None:
            if _computes(node):
                yield _written("new", id, node, line)
            continue
        one, two = _dtype(before), _dtype(node)
        other_dtype = bool(one and two) and one != two
        if node.op == "placeholder":
            yield from _input_changes(id, before, node)
        elif other_dtype and not widened & set(node.inputs):
            yield OperationChange("dtype", id, _called(node), line, one, two)
        if other_dtype:
            widened.add(node.name)
        mine = [same.get(name, name) for name in before.inputs]
        if not _computes(node):
            continue
        values = _constants(before), _constants(node)
        if len(mine) != len(node.inputs):
            if whole:
                continue  # a break has made inputs of what was computed in the same graph
            less = ", ".join(name for name in mine if name not in node.inputs)
            more = ", ".join(name for name in node.inputs if name not in mine)
            yield OperationChange("inputs", id, _called(node), line, less, more)
        elif values[0] != values[1] and not other_dtype:
            yield OperationChange("value", id, _called(node), line, *values)
    for node in graph.nodes:
        if node.name not in same and _computes(node):
            yield _written("gone", id, node, alignment.place(node.location))


_CONSTANT = re.compile(r"(?<![\w.])(?:-?\d+\.\d*(?:e[-+]?\d+)?|True|False|torch\.\w+\d+)(?![\w.])")
"""A number that is no size, a flag, a dtype."""


def _constants(node: Node) -> str:
    """Those among its arguments."""
    return ", ".join(_CONSTANT.findall(node.args))


def _written(
    kind: OperationChangeKind, graph: str, node: Node, line: MatchedLine | None
) -> OperationChange:
    size = node.value.bytes if node.value is not None else 0
    return OperationChange(kind, graph, _called(node), line, module=node.module, bytes=size or 0)


def _input_changes(graph: str, before: Node, after: Node) -> Iterator[OperationChange]:
    """What is other about an input of the graph. Symbolic sizes are compared elsewhere."""
    one, two = before.value, after.value
    if one is None or two is None:
        return
    name, line = input_name(after), matched_line(after.location)
    weight = "_parameters_" in after.target or "_buffers_" in after.target
    if one.dtype != two.dtype:
        yield OperationChange("input dtype", graph, name, line, one.dtype, two.dtype, weight=weight)
    if one.shape != two.shape and all(isinstance(n, int) for n in (*one.shape, *two.shape)):
        sizes = shape_text(one.shape), shape_text(two.shape)
        yield OperationChange("input shape", graph, name, line, *sizes, weight=weight)


_OURS = ("torch", "aten", "prims", "_operator", "operator", "math")


def _called(node: Node) -> str:
    """`gelu` of `torch.nn.functional.gelu`, `mylib::scale` of `mylib.scale.default`."""
    parts = node.target.removeprefix("torch.ops.").removesuffix(".default").split(".")
    foreign = len(parts) > 1 and parts[0] not in _OURS and node.op == "call_function"
    return "::".join(parts[:2]) if foreign else parts[-1]


def _computes(node: Node) -> bool:
    return node.op.startswith("call_")


def _dtype(node: Node) -> str:
    return node.value.dtype if node.value is not None else ""
