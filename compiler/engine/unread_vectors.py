"""Computes singular values and eigenvalues alone if nothing reads the vectors.

`torch.linalg.svdvals`, `eigvalsh`, `eigvals`, `cond`, `matrix_rank` and the norms 2 and nuclear ask
LAPACK for values only, unless a tensor is a subclass: so they trace to the calls that compute the
vectors as well, which takes two to three times as long (aten/src/ATen/native/
BatchLinearAlgebra.cpp, `linalg_svdvals`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from tcw.compiler.control.gate import Gate

aten = torch.ops.aten


def values_alone(module: fx.GraphModule, *, graph: str = "", gate: Gate) -> int:
    """Rewrite the graph in place and return the number of changed calls."""
    changed = 0
    for node in list(module.graph.nodes):
        place, change = _CALLS.get(node.target, (None, None))
        if change is not None and _only_reads(node, place):
            change(module.graph, node)
            changed += 1
    if changed:
        module.graph.eliminate_dead_code()
        module.recompile()
    return changed


def _only_reads(node: fx.Node, place: int | None) -> bool:
    users = [user for user in node.users if user.users]
    return bool(users) and all(
        user.target is operator.getitem and user.args[1] == place for user in users
    )


def _svd(graph: fx.Graph, node: fx.Node) -> None:
    left, values, right = node.meta["val"]
    node.args = (node.args[0], False, False)
    node.kwargs = {"driver": node.kwargs["driver"]} if "driver" in node.kwargs else {}
    node.meta = {**node.meta, "val": (left.new_empty(0), values, right.new_empty(0))}


def _eigh(graph: fx.Graph, node: fx.Node) -> None:
    values, vectors = node.meta["val"]
    triangle = node.args[1] if len(node.args) > 1 else node.kwargs.get("UPLO", "L")
    node.args, node.kwargs = (node.args[0], triangle, False), {}
    node.meta = {**node.meta, "val": (values, vectors.new_empty(0))}


def _eig(graph: fx.Graph, node: fx.Node) -> None:
    with graph.inserting_before(node):
        values = graph.call_function(aten._linalg_eigvals.default, (node.args[0],))
    values.meta = {**node.meta, "val": node.meta["val"][0]}
    for user in [user for user in node.users if user.users]:
        user.replace_all_uses_with(values)


_CALLS: dict[Any, tuple[int, Callable[[fx.Graph, fx.Node], None]]] = {
    aten._linalg_svd.default: (1, _svd),
    aten._linalg_eigh.default: (0, _eigh),
    aten.linalg_eig.default: (0, _eig),
}
"""Operation -> the place of the values among its results, and what leaves out the vectors."""
