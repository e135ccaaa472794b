"""A graph, or an earlier snapshot of it, as compact text: one node per line, with shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import fx

from tcw.compiler.graphs.nodes import arguments_text, format_argument, node_value, target_name
from tcw.compiler.graphs.tensors import dtype_name, size
from tcw.compiler.trace.dtypes import short_dtype


class NodeRow(NamedTuple):
    """A node with its mutable fields. The tuples are torch's own and immutable, so nothing is
    copied."""

    node: fx.Node
    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


Snapshot = list[NodeRow]


def snapshot(graph: fx.Graph) -> Snapshot:
    """The graph's current state, unaffected by later changes to the graph."""
    return [NodeRow(node, node.name, node.target, node.args, node.kwargs) for node in graph.nodes]


def same_graph(before: Snapshot, after: Snapshot) -> bool:
    """Whether nothing changed. Compares by identity first, and by text only where that differs."""
    if len(before) != len(after):
        return False
    suspects = []
    for old, new in zip(before, after, strict=True):
        if old.node is not new.node or old.target is not new.target or old.name != new.name:
            return False
        if old.args is not new.args or old.kwargs is not new.kwargs:
            suspects.append((old, new))
    return all(
        _equal(old.args, new.args) and _equal(old.kwargs, new.kwargs) for old, new in suspects
    )


def _equal(old: object, new: object) -> bool:
    """Compare arguments without evaluating symbolic values, so that no guard is installed."""
    if old is new:
        return True
    if type(old) is not type(new) or isinstance(old, fx.Node):
        return False
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(_equal, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(_equal(old[key], new[key]) for key in old)
    if isinstance(old, slice) and isinstance(new, slice):
        return _equal((old.start, old.stop, old.step), (new.start, new.stop, new.step))
    if isinstance(old, torch.Tensor):
        return False
    return str(old) == str(new)


def short_type(value: object) -> str:
    """`f32[8, 64]`, `i64[s0]`, `SymInt(s0)`, or a tuple of these; "" for other values."""
    if isinstance(value, torch.Tensor):
        try:
            sizes = ", ".join(str(size(item)) for item in value.shape)
        except Exception:  # a subclass may refuse, so nothing is known
            sizes = "?"
        name = dtype_name(value.dtype)
        return f"{short_dtype(name)}[{sizes}]"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(short_type(item) or "_" for item in value)
        return f"({inner})"
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return f"{type(value).__name__}({size(value)})"
    return ""


def render(rows: Iterable[NodeRow]) -> str:
    """One node per line: `addmm: f32[8, 64] = aten.addmm.default(primals_2, arg0, permute)`."""
    return "".join(_line(row) + "\n" for row in rows)


def _line(row: NodeRow) -> str:
    if row.node.op == "output":
        results = row.args[0] if row.args else ()
        if isinstance(results, (list, tuple)):  # all of them: an output is never truncated
            return f"return ({', '.join(format_argument(value) for value in results)})"
        return f"return {format_argument(results)}"
    kind = short_type(node_value(row.node))
    left = f"{row.name}: {kind}" if kind else row.name
    if row.node.op == "placeholder":
        return f"{left} = placeholder"
    if row.node.op == "get_attr":
        return f"{left} = self.{row.target}"
    if row.node.op == "call_method":
        receiver = format_argument(row.args[0]) if row.args else ""
        rest = ", ".join(format_argument(value) for value in row.args[1:])
        return f"{left} = {receiver}.{row.target}({rest})"
    owner = "self." if row.node.op == "call_module" else ""
    return f"{left} = {owner}{target_name(row.target)}({arguments_text(row.args, row.kwargs)})"
