"""Operations that differ between captured graphs: new, gone, in another dtype, with other
constants; then by module, where a layer is gone or an activation is another one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from msgspec import structs

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine, matched_line
from tcw.viewers.summary.ranks.graph_sides import input_name
from tcw.viewers.words import listed, plural, shape_text

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
    graphs = {id: graph for id, graph in recording.graphs.items() if graph.kind == "captured"}
    if not whole or not graphs:
        return graphs
    nodes = [
        structs.replace(
            node,
            name=f"{graph.id} {node.name}",
            inputs=tuple(f"{graph.id} {name}" for name in node.inputs),
        )
        for graph in graphs.values()
        if graph.compile_id.endswith("/0")
        for node in graph.nodes
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
        elif values[0] != values[1] and not other_dtype and len(values[0]) == len(values[1]):
            was, given = (", ".join(side) for side in values)
            yield OperationChange("value", id, _called(node), line, was, given)
    for node in graph.nodes:
        if node.name not in same and _computes(node):
            yield _written("gone", id, node, alignment.place(node.location))


_CONSTANT = re.compile(
    r"(?<![\w.])(?:-?\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)|True|False|torch\.\w+\d+)(?![\w.])"
)
"""A number that is no size, a flag, a dtype."""


def _constants(node: Node) -> list[str]:
    """Those among its arguments."""
    return _CONSTANT.findall(node.args)


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


_NAMED = 4
"""Maximum number of operations that are named of a module."""

_MANY = 6
"""Above this number of lines and operations that are new or gone in a module, they are one
change."""

_Key = tuple[str, str]
"""A graph and the path of a module in it."""


def by_module(
    changes: Sequence[OperationChange], alignment: Alignment
) -> tuple[OperationChange, ...]:
    """The changes, with one instead of those of a module that only one side runs, of which no
    operation is as before, or of which many are gone, or new."""
    base, run = _operations(alignment.base), _operations(alignment.run)
    gone = _count(changes, "gone")
    new = _count(changes, "new")
    found: dict[object, list[OperationChange]] = {}
    for number, change in enumerate(changes):
        key: object = number
        if change.kind in ("new", "gone"):
            for path in _paths(change.module):
                at = (change.graph, path)
                if gone[at] == base[at] and new[at] == run[at]:
                    key = at
                    break
        found.setdefault(key, []).append(change)
    merged = [
        _merged(key, group) if isinstance(key, tuple) else group[0] for key, group in found.items()
    ]
    return tuple(_many_together(merged))


def _many_together(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """Operations that went from a module, or came to it, in graph order; the largest are named."""

    def key(change: OperationChange) -> object:
        plain = change.kind in ("new", "gone") and change.module and "::" not in change.operation
        return (change.graph, change.module, change.kind) if plain else None

    groups = grouped((key(change) or number, change) for number, change in enumerate(changes))
    named: dict[object, str] = {}
    kinds = Counter(
        (change.graph, change.module) for change, *_ in groups.values() if change.module
    )
    for group in groups.values():
        first, *_ = group
        places = {(change.line, change.operation) for change in group}
        if len(places) <= _MANY or kinds[first.graph, first.module] > 1:
            yield from group
            continue
        largest = sorted(group, key=lambda change: -change.bytes)
        names = listed(list(dict.fromkeys(change.operation for change in largest)), _NAMED)
        # of a recompile with symbolic sizes, the bytes are unknown
        names = named.setdefault((first.module, first.kind, len(group)), names)
        kind: OperationChangeKind = "many new" if first.kind == "new" else "many gone"
        yield replace(first, kind=kind, operation=first.module, after=names, alike=len(group))


def _paths(module: str) -> Iterator[str]:
    """`a`, `a.b` and `a.b.c` of `a.b.c`."""
    parts = module.split(".") if module else []
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _operations(recording: Recording) -> Counter[_Key]:
    """How many operations each module computes, with those inside it."""
    return Counter(
        (graph.id, path)
        for graph in recording.graphs.values()
        if graph.kind == "captured"
        for node in graph.nodes
        if node.op.startswith("call_")
        for path in _paths(node.module)
    )


def _count(changes: Sequence[OperationChange], kind: OperationChangeKind) -> Counter[_Key]:
    return Counter(
        (change.graph, path)
        for change in changes
        if change.kind == kind
        for path in _paths(change.module)
    )


def _merged(key: _Key, group: Sequence[OperationChange]) -> OperationChange:
    gone = [change.operation for change in group if change.kind == "gone"]
    new = [change.operation for change in group if change.kind == "new"]
    kind: OperationChangeKind = "module" if gone and new else "module new" if new else "module gone"
    words = [listed(list(dict.fromkeys(names)), _NAMED) for names in (gone, new)]
    if kind != "module" and len(group) > _NAMED:
        words = [plural(len(names), "operation") for names in (gone, new)]
    first = next((change for change in group if change.kind == "new"), group[0])
    return replace(first, kind=kind, operation=key[1], before=words[0], after=words[1])


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)")


def in_every_layer(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """The changes, with `*` for the number of a layer where several layers change alike."""
    paths: dict[object, set[str]] = {}
    for change in changes:
        paths.setdefault(_alike(change), set()).add(change.operation)
    for operation_change in changes:
        several = (
            operation_change.kind.startswith(("module", "many"))
            and len(paths[_alike(operation_change)]) > 1
        )
        name = (
            _NUMBER.sub("*", operation_change.operation) if several else operation_change.operation
        )
        yield replace(operation_change, operation=name)


def _alike(change: OperationChange) -> object:
    name = _NUMBER.sub("*", change.operation)
    return change.kind, name, change.line, change.before, change.after, change.alike


def inputs_together(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """The changes, with one for all inputs that change their dtype alike, and one for all
    parameters of another shape."""

    def key(change: OperationChange) -> object:
        if change.kind == "input dtype":
            return change.kind, change.before, change.after
        return change.kind if change.kind == "input shape" and change.weight else None

    groups = grouped((key(change) or number, change) for number, change in enumerate(changes))
    for group in groups.values():
        first, alike = group[0], len({change.operation for change in group})
        if alike > 1:
            yield replace(first, line=None, alike=alike)
        else:
            yield from group
