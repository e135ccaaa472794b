"""Sums at indices on a GPU: 16-bit floats are added in float32.

Where several sources go to one place, a GPU adds them one after another by atomic operations, and
each addition in 16 bits would round: after 256 ones, a sum in bfloat16 stays 256. ATen's kernels
sort the indices and keep a sum in float32 (aten/src/ATen/native/cuda/Indexing.cu). Here the result
is float32 until all is added. Atomic additions of float32 are also faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import fx

from tcw.compiler.rewrites.subject import Subject, add_call

aten = torch.ops.aten

_NARROW = (torch.float16, torch.bfloat16)


def _accumulates(node: fx.Node) -> bool:
    return bool(node.args[3] if len(node.args) > 3 else node.kwargs.get("accumulate", False))


def _sums(node: fx.Node) -> bool:
    return len(node.args) > 4 and node.args[4] in ("sum", "mean")


def _always(_: fx.Node) -> bool:
    return True


def _never(_: fx.Node) -> bool:
    return False


OPERATIONS = {
    aten.index_put.default: ((0, 2), _accumulates),
    aten._unsafe_index_put.default: ((0, 2), _accumulates),
    aten.index_add.default: ((0, 3), _always),
    aten.scatter_add.default: ((0, 3), _always),
    aten.scatter_reduce.two: ((0, 3), _sums),
    aten.embedding_dense_backward.default: ((0,), _always),
}
"""Operation -> the places of the arguments whose dtype the result has; whether it adds."""


def narrow_sums(graph: fx.Graph) -> Iterator[fx.Node]:
    """The operations that add 16-bit floats at indices."""
    for node in list(graph.nodes):
        _, adds = OPERATIONS.get(node.target, ((), _never))
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.dtype in _NARROW and adds(node):
            yield node


def wide_sums(subject: Subject) -> int:
    """Rewrite the graph in place and return the number of operations that add in float32."""
    sums = list(narrow_sums(subject.module.graph))
    for node in sums:
        _widen(node, OPERATIONS[node.target][0])
    return len(sums)


def _widen(node: fx.Node, places: tuple[int, ...]) -> None:
    narrow = node.meta["val"].dtype
    convert = partial(add_call, node, aten._to_copy.default)
    with node.graph.inserting_before(node):
        for place in places:
            if isinstance(node.args[place], fx.Node):
                node.update_arg(place, convert(node.args[place], dtype=torch.float32))
    readers = list(node.users)
    node.meta = {**node.meta, "val": node.meta["val"].to(torch.float32)}
    with node.graph.inserting_after(node):
        result = convert(node, dtype=narrow)
    for reader in readers:
        reader.replace_input_with(node, result)
