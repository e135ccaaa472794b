"""Operations that only one of two captured graphs has, or that compute in another dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compiler.trace.records import Node
from viewers.summary.differences.alignment import Alignment, MatchedLine, matched_line

OperationChangeKind = Literal["new", "gone", "dtype", "inputs"]


@dataclass(frozen=True)
class OperationChange:
    """One node of a captured graph."""

    kind: OperationChangeKind
    graph: str
    operation: str
    """`softmax`, `mylib::scale`."""
    line: MatchedLine | None
    """Where the run has it, or the base's line if it is gone."""
    before: str = ""
    after: str = ""
    """Of `dtype`: the dtypes. Of `inputs`: the names that only the base reads, and only the run."""

    @property
    def telling(self) -> bool:
        """Whether it says more than that an operation was written or deleted."""
        return self.kind in ("dtype", "inputs") or "::" in self.operation


def operation_changes(alignment: Alignment) -> tuple[OperationChange, ...]:
    """In graph order. A dtype that follows from the operand before it is not another change."""
    found: list[OperationChange] = []
    for id, graph in alignment.base.graphs.items():
        other = alignment.run.graphs.get(id)
        if graph.kind != "captured" or other is None:
            continue
        same = alignment.nodes(id)
        back = {new: old for old, new in same.items()}
        old = {node.name: node for node in graph.nodes}
        widened: set[str] = set()
        for node in other.nodes:
            before = old.get(back.get(node.name, ""))
            line = matched_line(node.location)
            if before is None:
                if _computes(node):
                    found.append(OperationChange("new", id, _called(node), line))
                continue
            one, two = _dtype(before), _dtype(node)
            if one != two and one and two:
                if not widened & set(node.inputs):
                    found.append(OperationChange("dtype", id, _called(node), line, one, two))
                widened.add(node.name)
            mine = [same.get(name, name) for name in before.inputs]
            if _computes(node) and len(mine) != len(node.inputs):
                less = ", ".join(one for one in mine if one not in node.inputs)
                more = ", ".join(one for one in node.inputs if one not in mine)
                found.append(OperationChange("inputs", id, _called(node), line, less, more))
        for node in graph.nodes:
            if node.name not in same and _computes(node):
                line = alignment.place(node.location)
                found.append(OperationChange("gone", id, _called(node), line))
    return tuple(found)


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
