"""The complex-scatter pass: complex tensors are copied, and their slices written, with fewer passes
over memory.

Loops have no complex numbers, so each operation on them is a call. The gradient of `rfft`, and what
functionalisation makes of an assignment to a slice, is a copy of the source (`copy`), a constant
tensor, and a copy of that in which the slice is replaced (`slice_scatter`). The first copy has no
purpose of its own, and a slice of a constant is a pad: one pass over the result instead of two.
A conjugate that is resolved is a `clone` of one that is in memory already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from tcw.compiler.graphs.aten_facts import aliases
from tcw.compiler.rewrites.subject import Subject

aten = torch.ops.aten


def complex_copies(graph: fx.Graph) -> Iterator[fx.Node]:
    """The copies and scatters of complex values that may change."""
    return (node for node in graph.nodes if _is_needless(node) or _is_scatter(node))


def complex_scatters(subject: Subject) -> int:
    """Rewrite the graph in place and return the number of copies and scatters that changed."""
    changed, graph = 0, subject.module.graph
    for node in reversed(list(graph.nodes)):
        if _is_needless(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
            changed += 1
    for node in list(graph.nodes):
        if _is_scatter(node):
            changed += _without_copy(node) | _as_pad(graph, node)
    if changed:
        graph.eliminate_dead_code()
    return changed


def _is_scatter(node: fx.Node) -> bool:
    return node.target is aten.slice_scatter.default and bool(node.meta["val"].is_complex())


def _is_needless(node: fx.Node) -> bool:
    """Whether this is another name of a complex value, or a copy, only read by operations with
    results of their own, of one that an operation computes."""
    if node.target not in (aten.clone.default, aten.alias.default):
        return False
    source, value = node.args[0], node.meta["val"]
    if not value.is_complex() or any(user.op != "call_function" for user in node.users):
        return False
    if node.target is aten.alias.default:
        return True
    computed = source.op == "call_function" and not _aliases(source)
    alike = source.meta["val"].stride() == value.stride()
    return computed and alike and not any(_aliases(user) for user in node.users)


def _aliases(node: fx.Node) -> bool:
    return node.target is not aten._conj.default and aliases(node.target)  # lowering copies these


def _without_copy(node: fx.Node) -> bool:
    """Read the tensor whose copy would be read, if the copy has the same elements."""
    copied = node.args[1]
    if not isinstance(copied, fx.Node) or copied.target is not aten.copy.default:
        return False
    source = copied.args[1]
    value = source.meta["val"]
    if value.dtype != copied.meta["val"].dtype or value.shape != copied.meta["val"].shape:
        return False
    node.update_arg(1, source)
    return True


def _as_pad(graph: fx.Graph, node: fx.Node) -> bool:
    """Replace a scatter into a constant, if all sizes are known, by a pad of the same strides."""
    base, source = node.args[:2]
    named = dict(zip(("dim", "start", "end", "step"), node.args[2:], strict=False)) | node.kwargs
    number = _constant(base)
    if not isinstance(number, (int, float, complex)) or named.get("step", 1) != 1:
        return False
    result, value = node.meta["val"], source.meta["val"]
    dim = named.get("dim", 0) % result.dim()
    bounds = (named.get("start"), named.get("end"))
    if not all(isinstance(size, int) for size in (*result.shape, *value.shape)) or not all(
        bound is None or isinstance(bound, int) for bound in bounds
    ):
        return False
    start, end, _ = slice(*bounds).indices(result.shape[dim])
    pads = [0, 0] * (result.dim() - 1 - dim) + [start, result.shape[dim] - end]
    if end - start != value.shape[dim] or value.dtype != result.dtype:
        return False
    with value.fake_mode:
        padded = aten.constant_pad_nd.default(value, pads, number)
    if padded.stride() != result.stride():
        return False
    with graph.inserting_before(node):
        pad: Any = graph.call_function(aten.constant_pad_nd.default, (source, pads, number))
    pad.meta = {**node.meta, "val": padded}
    node.replace_all_uses_with(pad)
    return True


def _constant(node: fx.Node) -> Any:
    """The number in every element of a tensor, or of what it is sliced from; None if unknown."""
    while node.target is aten.slice.Tensor:
        node = node.args[0]
    return node.args[1] if node.target is aten.full.default else None
