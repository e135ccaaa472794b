"""Statistics of 16-bit tensors that a backward reads stay float32.

torch's decompositions return a normalisation's mean and reciprocal deviation in the dtype of its
input, as ATen's kernels do, and the backward's decompositions widen them again. With a mean far
from zero, this loses most of the gradients' precision. The backward therefore reads the statistics
before rounding; they have so few elements that saving them in float32 costs nothing. Users of the
operation's own statistics still get them rounded.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from tcw.compiler.rewrites.subject import Subject

aten = torch.ops.aten

_NARROW = (torch.bfloat16, torch.float16)

_VIEWS = frozenset(
    {aten.alias.default, aten.expand.default, aten.squeeze.dims, aten.squeeze.dim}
    | {aten.unsqueeze.default, aten.view.default}
)

_REDUCTIONS = frozenset(
    {aten.var_mean.correction, aten.var.correction, aten.mean.dim, aten.sum.dim_IntList}
)


def keep_statistics_wide(subject: Subject) -> int:
    """Rewrite a joint graph in place and return the number of statistics that are read wide. Unused
    nodes are left to the partitioner."""
    changed = 0
    for node in list(subject.module.graph.nodes):
        if _is_rounded(node) and _is_statistic(node.args[0], _origin(node)):
            _widen_readers(node, node.args[0])
            changed += 1
    return changed


def _is_rounded(node: fx.Node) -> bool:
    """Whether this is the final conversion of a decomposition; the user's own are not undone."""
    if node.target is not aten._to_copy.default or _dtype(node) not in _NARROW:
        return False
    return _origin(node) not in ("None", str(node.target)) and _dtype(node.args[0]) is torch.float32


def _origin(node: fx.Node) -> str:
    """The operation that the node was decomposed from, by name, since the object may be a copy."""
    return str(node.meta.get("original_aten"))


def _is_statistic(node: Any, origin: str) -> bool:
    """Whether it depends only on results of reductions, all within one decomposition."""
    if node.target is operator.getitem:
        return _is_statistic(node.args[0], origin)
    if node.op != "call_function" or _origin(node) != origin:
        return False
    if node.target in _REDUCTIONS:
        return True
    sources = node.all_input_nodes
    return _is_elementwise(node) and all(_is_statistic(source, origin) for source in sources)


def _widen_readers(narrow: fx.Node, wide: fx.Node) -> None:
    """Make a backward decomposition's operations on `narrow` compute from `wide` instead."""
    for reader in list(narrow.users):
        if "backward" not in _origin(reader) or not _is_elementwise(reader):
            continue
        again = wide if _is_copy_of(reader, wide) else _with_argument(reader, narrow, wide)
        if _dtype(again) is _dtype(reader):
            reader.replace_all_uses_with(again)
        else:
            _widen_readers(reader, again)


def _is_copy_of(reader: fx.Node, wide: fx.Node) -> bool:
    """Whether a conversion returns exactly what `wide` already is."""
    if reader.target is not aten._to_copy.default or _dtype(reader) is not _dtype(wide):
        return False
    return bool(reader.meta["val"].stride() == wide.meta["val"].stride())


def _with_argument(reader: fx.Node, narrow: fx.Node, wide: fx.Node) -> fx.Node:
    """A copy of the operation with another argument."""
    graph = reader.graph
    with graph.inserting_before(reader):
        again = graph.node_copy(reader, lambda node: wide if node is narrow else node)
    args, kwargs = fx.map_arg((again.args, again.kwargs), lambda node: node.meta["val"])
    again.meta["val"] = reader.target(*args, **kwargs)
    return again


def _is_elementwise(node: fx.Node) -> bool:
    pointwise = torch.Tag.pointwise in getattr(node.target, "tags", ())
    return pointwise or node.target in _VIEWS or node.target is aten._to_copy.default


def _dtype(node: Any) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None
