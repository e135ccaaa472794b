"""Operations that differ between captured graphs: new, gone, in another dtype, with other
constants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine, matched_line
from tcw.viewers.summary.ranks.graph_sides import input_name
from tcw.viewers.words import plural, shape_text

OperationChangeKind = Literal[
    "new", "gone", "dtype", "value", "inputs", "input dtype", "input shape",
    "module", "module new", "module gone", "many new", "many gone",
]  # fmt: skip


@dataclass(frozen=True)
class OperationChange:
    """One node of a captured graph, or all nodes of a module (`model_changes`)."""

    kind: OperationChangeKind
    graph: str
    operation: str
    """`softmax`, `mylib::scale`; the name of an input or of a module."""
    line: MatchedLine | None
    """Where the run has it, or the base's line if it is gone."""
    before: str = ""
    after: str = ""
    """Of `dtype` and `input dtype`: the dtypes; of `value`: the constants that differ; of `input
    shape`: the shapes. Of `inputs`: the names that only the base reads, and only the run, or how
    many tensors each. Of a module: its operations."""
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
    base, run = (captured(side, whole) for side in (alignment.base, alignment.run))
    return tuple(
        change
        for id, graph in base.items()
        if (other := run.get(id)) is not None
        for change in _of_graphs(id, graph, other, alignment, whole)
    )


def captured(recording: Recording, whole: bool) -> dict[str, Graph]:
    """By id; as one, what the first compile of each frame computes."""
    graphs = {id: graph for id, graph in recording.graphs.items() if graph.kind == "captured"}
    if not whole or not graphs:
        return graphs
    nodes = [
        structs.replace(
            node,
            name=f"{graph.id} {node.name}",
            inputs=tuple(f"{graph.id} {name}" for name in node.inputs if name in tensors),
        )
        for graph in graphs.values()
        if graph.compile_id.endswith("/0")
        for tensors in (_tensors(graph),)
        for node in graph.nodes
        if computes(node)
    ]
    first = next(iter(graphs.values()))
    return {"": structs.replace(first, id="", nodes=tuple(nodes))}


def _tensors(graph: Graph) -> set[str]:
    """Its nodes that are tensors, or several, not sizes."""
    return {node.name for node in graph.nodes if node.value is not None or node.values}


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
            if computes(node):
                yield _written("new", id, node, line)
            continue
        one, two = _dtype(before), _dtype(node)
        other_dtype = bool(one and two) and one != two
        if node.op == "placeholder":
            yield from _input_changes(id, before, node)
        elif other_dtype and not widened & set(node.inputs):
            yield OperationChange("dtype", id, called(node), line, one, two)
        if other_dtype:
            widened.add(node.name)
        if not computes(node):
            continue
        reads = _other_inputs(before, node, same, None if whole else (graph, other))
        if reads is not None:
            yield OperationChange("inputs", id, called(node), line, *reads, module=node.module)
        elif not other_dtype and (values := _other_constants(before, node)) is not None:
            yield OperationChange("value", id, called(node), line, *values, module=node.module)
    for node in graph.nodes:
        if node.name not in same and computes(node):
            yield _written("gone", id, node, alignment.place(node.location))


def _other_inputs(
    before: Node, after: Node, same: Mapping[str, str], graphs: tuple[Graph, Graph] | None
) -> tuple[str, str] | None:
    """The tensors that only one of two equal operations reads; None if they read as many. Without
    `graphs`, how many both read: a break has made inputs of what was computed in the same graph."""
    if graphs is None:
        counts = len(before.inputs), len(after.inputs)
        if counts[0] == counts[1]:
            return None
        return plural(counts[0], "tensor"), plural(counts[1], "tensor")
    tensors = [_tensors(graph) for graph in graphs]
    mine = [same.get(name, name) for name in before.inputs if name in tensors[0]]
    theirs = [name for name in after.inputs if name in tensors[1]]
    if len(mine) == len(theirs):
        return None
    less = ", ".join(name for name in mine if name not in theirs)
    return less, ", ".join(name for name in theirs if name not in mine)


_CONSTANT = re.compile(
    r"(?<![\w.])(?:\w+=)?"
    r"(?:-?\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)|-?inf|nan|True|False|torch\.\w+\d+)(?![\w.])"
)
"""A number that is no size, a flag, a dtype; with its keyword."""


def _other_constants(before: Node, after: Node) -> tuple[str, str] | None:
    """Those among the arguments that differ; None if none does."""
    one, two = (_CONSTANT.findall(node.args) for node in (before, after))
    if one == two or len(one) != len(two):
        return None
    pairs = [(old, new) for old, new in zip(one, two, strict=True) if old != new]
    return ", ".join(old for old, _ in pairs), ", ".join(new for _, new in pairs)


def _written(
    kind: OperationChangeKind, graph: str, node: Node, line: MatchedLine | None
) -> OperationChange:
    size = node.value.bytes if node.value is not None else 0
    return OperationChange(kind, graph, called(node), line, module=node.module, bytes=size or 0)


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


def called(node: Node) -> str:
    """`gelu` of `torch.nn.functional.gelu`, `mylib::scale` of `mylib.scale.default`."""
    parts = node.target.removeprefix("torch.ops.").removesuffix(".default").split(".")
    foreign = len(parts) > 1 and parts[0] not in _OURS and node.op == "call_function"
    return "::".join(parts[:2]) if foreign else parts[-1]


_SIZES = ("size", "stride", "numel", "dim", "storage_offset")
_WRITES = ("operator.setitem", "operator.delitem")


def computes(node: Node) -> bool:
    """Whether it is an operation, not one on sizes."""
    if not node.op.startswith("call_") or node.value is not None or node.values:
        return node.op.startswith("call_")
    root, _, last = node.target.rpartition(".")
    of_sizes = root in ("operator", "_operator", "math") and node.target not in _WRITES
    return not (of_sizes or last in _SIZES or last.startswith("sym_"))


def _dtype(node: Node) -> str:
    return node.value.dtype if node.value is not None else ""


_WORDS: dict[OperationChangeKind, str] = {
    "new": "{0} is new",
    "gone": "{0} is gone",
    "dtype": "{0} computes in {after}, was {before}",
    "value": "{0} is given {after}, was {before}",
    "inputs": "{0} reads {after} instead of {before}",
    "input dtype": "{0} is {after}, was {before}",
    "input shape": "{0} is {after}, was {before}",
    "module new": "{0} is new: {after}",
    "module gone": "{0} is gone: {before}",
    "many new": "{alike} operations are new in {0}: {after}",
    "many gone": "{alike} operations are gone from {0}: {after}",
    "module": "{0} computes {after} instead of {before}",
}


def operation_words(change: OperationChange) -> str:
    """`gelu is gone`, `layers.2 is new: 17 operations`, `50 graph inputs are bfloat16, were
    float32`."""
    words = _WORDS[change.kind]
    if change.kind == "inputs" and not (change.before and change.after):
        words = "{0} also reads {after}" if change.after else "{0} no longer reads {before}"
    elif change.kind == "input dtype" and change.alike > 1:
        words = "{alike} graph inputs are {after}, were {before}"
    elif change.kind == "input shape" and change.alike > 1:
        words = "{alike} parameters have other sizes: " + words + ", …"
    sides = {"before": change.before, "after": change.after, "alike": change.alike}
    return words.format(change.operation, **sides)
