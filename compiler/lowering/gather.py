"""Reads at positions given by a tensor: gathers inside a map."""

from __future__ import annotations

from collections.abc import Mapping

from tcw.compiler.loops.expressions import Gather, convert
from tcw.compiler.loops.layouts import compose_views, permute
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.dimensions import dimension
from tcw.compiler.lowering.indexing import (
    GATHER,
    INDEX,
    TARGET,
    Indices,
    advanced,
    base,
    index_terms,
    positions,
)
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor


def gathered(
    builder: Builder,
    source: Tensor,
    dims: Mapping[int, int],
    indices: Mapping[int, Tensor],
    *,
    wraps: bool,
    says: str = "",
) -> Tensor:
    """A map over the output that reads `source`.

    Each dimension of `source` follows an output dimension (`dims`), or an index tensor that
    broadcasts to the output (`indices`).
    """
    meta = builder.meta
    if 0 in meta.shape:
        return builder.buffer()
    if any(source.shape[dim] == 0 for dim in indices):
        raise NoLowering("an index into no elements")
    memory = builder.in_memory(source)
    order = storage_order(meta.shape, meta.strides)
    layout = base(memory, meta.shape, dims)
    view = compose_views((layout,), (permute(meta.shape, order),))
    given = index_terms(builder, memory, indices, meta.shape, order, wraps=wraps, says=says)
    terms = tuple(
        positions(builder, memory, dim, index, meta.shape, order) or term
        for (dim, index), term in zip(indices.items(), given, strict=True)
    )
    read = Gather(memory.value, view, terms, source.dtype)
    return builder.map(convert(read, meta.dtype))


@lowers("embedding")
def embedding(
    builder: Builder,
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    index = builder.reshape(indices, (*indices.shape, 1))
    return gathered(builder, weight, {1: len(indices.shape)}, {0: index}, wraps=False)


@lowers("gather")
def gather(
    builder: Builder, tensor: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False
) -> Tensor:
    says = TARGET if str(builder.taken_from).startswith("aten.nll_loss") else GATHER
    if not tensor.shape or not index.shape:
        tensor = tensor if tensor.shape else builder.reshape(tensor, (1,))
        return gathered(builder, tensor, {}, {0: index}, wraps=False, says=says)
    dim = dimension(dim, len(tensor.shape))
    dims = {d: d for d in range(len(tensor.shape)) if d != dim}
    return gathered(builder, tensor, dims, {dim: index}, wraps=False, says=says)


@lowers("index.Tensor")
def index(builder: Builder, tensor: Tensor, indices: Indices) -> Tensor:
    found = advanced(builder, tensor, indices)
    # ATen decomposes index_select into this operation, and words its errors as for an embedding
    says = "" if str(builder.taken_from).startswith("aten.index_select") else INDEX
    return gathered(builder, tensor, found.dims, found.indices, wraps=True, says=says)
