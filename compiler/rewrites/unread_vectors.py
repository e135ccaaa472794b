"""Computes singular values and eigenvalues alone if nothing reads the vectors.

`torch.linalg.svdvals`, `eigvalsh`, `eigvals`, `cond`, `matrix_rank` and the norms 2 and nuclear ask
LAPACK for values only, unless a tensor is a subclass: so they trace to the calls that compute the
vectors as well, which takes two to three times as long (aten/src/ATen/native/
BatchLinearAlgebra.cpp, `linalg_svdvals`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from tcw.compiler.rewrites.subject import Subject

aten = torch.ops.aten


def unread_vectors(graph: fx.Graph) -> Iterator[fx.Node]:
    """The calls of which only the values are read."""
    for node in list(graph.nodes):
        if node.target in _CALLS and _only_reads(node, _CALLS[node.target][0]):
            yield node


def drop_unread_vectors(subject: Subject) -> int:
    """Rewrite the graph in place and return the number of changed calls."""
    graph = subject.module.graph
    calls = list(unread_vectors(graph))
    for node in calls:
        _CALLS[node.target][1](graph, node)
    if calls:
        graph.eliminate_dead_code()
    return len(calls)


def _only_reads(node: fx.Node, place: int) -> bool:
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
