"""Views: nothing is computed; another layout maps to the same value.

Operations that ATen copies for although a view suffices (`flip`, `repeat`, the `_copy` variants)
are views as well. A copy is made only if memory is required.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.loops.graph import Input, Result, extent
from tcw.compiler.loops.layouts import (
    Layout,
    expand,
    flip,
    permute,
    row_major,
    slice_dimension,
    span,
)
from tcw.compiler.loops.sizes import Size, add, at_least, multiply, subtract
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.dimensions import bound, dimension, dimensions, position, without
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor


@lowers(
    "view",
    "reshape",
    "_reshape_copy",
    "view_copy",
    "view_as",
    "flatten",
    "squeeze",
    "unsqueeze",
    "alias",
    "detach_copy",
    "resolve_conj",
    "resolve_neg",
    "prims.collapse_view",
    "prims.split_dim",
)
def reshape(builder: Builder, tensor: Tensor, *_: object) -> Tensor:
    """The same elements in the same order."""
    return builder.reshape(tensor, builder.meta.shape)


@lowers("view.dtype", "view_copy.dtype")
def view_dtype(builder: Builder, tensor: Tensor, dtype: object) -> Tensor:
    if builder.meta.dtype != tensor.dtype:
        raise NoLowering("the bits of another dtype")
    return tensor


@lowers("permute", "prims.transpose")
def permuted(builder: Builder, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    order = dimensions(dims, len(tensor.shape))
    return builder.view(tensor, permute(tensor.shape, order), builder.meta.shape)


@lowers("swapaxes")
def transpose(builder: Builder, tensor: Tensor, first: int, second: int) -> Tensor:
    order = list(range(len(tensor.shape)))
    if order:
        a, b = dimension(first, len(order)), dimension(second, len(order))
        order[a], order[b] = order[b], order[a]
    return permuted(builder, tensor, order)  # type: ignore[return-value]


@lowers("numpy_T")
def t(builder: Builder, tensor: Tensor) -> Tensor:
    return permuted(builder, tensor, range(len(tensor.shape))[::-1])  # type: ignore[return-value]


@lowers("expand", "expand_as", "broadcast_to")
def expanded(builder: Builder, tensor: Tensor, size: object, *, implicit: bool = False) -> Tensor:
    shape = builder.meta.shape
    return builder.view(tensor, expand(tensor.shape, shape), shape)


@lowers("prims.broadcast_in_dim")
def broadcast_in_dim(
    builder: Builder, tensor: Tensor, shape: Sequence[Size], dims: Sequence[int]
) -> Tensor:
    sizes: list[Size] = [1] * len(shape)
    for dim, size in zip(dims, tensor.shape, strict=True):
        sizes[dim] = size
    return expanded(builder, builder.reshape(tensor, tuple(sizes)), shape)  # type: ignore[return-value]


_END = (1 << 63) - 1


@lowers("slice", "slice_copy")
def sliced(
    builder: Builder,
    tensor: Tensor,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
) -> Tensor:
    dim = dimension(dim, len(tensor.shape))
    shape = builder.meta.shape
    size = tensor.shape[dim]
    if step == 1 and end in (None, _END, size):
        first = subtract(size, shape[dim])
    else:
        first = bound(start, size, 0)
    return builder.view(tensor, slice_dimension(tensor.shape, dim, first, shape[dim], step), shape)


@lowers("narrow", "narrow_copy")
def narrow(
    builder: Builder, tensor: Tensor, dim: int, start: Size | Tensor, length: Size
) -> Tensor:
    if isinstance(start, Tensor):
        raise NoLowering("the start is stored in a tensor")
    dim = dimension(dim, len(tensor.shape))
    return piece(builder, tensor, dim, position(start, tensor.shape[dim]), length)


def piece(builder: Builder, tensor: Tensor, dim: int, start: Size, length: Size) -> Tensor:
    """`length` elements of a dimension, from `start`."""
    layout = slice_dimension(tensor.shape, dim, start, length)
    return builder.view(tensor, layout, layout.shape)


def picked(builder: Builder, tensor: Tensor, dim: int, index: Size) -> Tensor:
    """The tensor at one index of a dimension, without that dimension."""
    layout = slice_dimension(tensor.shape, dim, index, 1)
    return builder.view(tensor, layout, without(tensor.shape, dim))


@lowers("select.int", "select_copy.int")
def select(builder: Builder, tensor: Tensor, dim: int, index: Size) -> Tensor:
    dim = dimension(dim, len(tensor.shape))
    return picked(builder, tensor, dim, position(index, tensor.shape[dim]))


@lowers("split", "split_copy", "split_with_sizes", "chunk", "unsafe_chunk")
def split(
    builder: Builder, tensor: Tensor, sizes: object, dim: int = 0
) -> tuple[Tensor | None, ...]:
    """Adjacent pieces, with the sizes that ATen computed."""
    dim = dimension(dim, len(tensor.shape))
    start: Size = 0
    pieces: list[Tensor] = []
    for meta in builder.metas:
        assert meta is not None
        pieces.append(piece(builder, tensor, dim, start, meta.shape[dim]))
        start = add(start, meta.shape[dim])
    return tuple(pieces)


@lowers("diagonal")
def diagonal(
    builder: Builder, tensor: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    layout = diagonal_layout(tensor, offset, dim1, dim2, builder.meta.shape[-1])
    return builder.view(tensor, layout, builder.meta.shape)


def diagonal_layout(tensor: Tensor, offset: int, dim1: int, dim2: int, length: Size) -> Layout:
    """Maps (the other dimensions, position on the diagonal) to the tensor's indices."""
    rank = len(tensor.shape)
    one, two = dimension(dim1, rank), dimension(dim2, rank)
    whole = row_major(tensor.shape)
    others = [d for d in range(rank) if d not in (one, two)]
    strides = whole.strides
    start = multiply(offset, strides[two]) if offset >= 0 else multiply(-offset, strides[one])
    return Layout(
        (*(tensor.shape[d] for d in others), length),
        (*(strides[d] for d in others), add(strides[one], strides[two])),
        start,
    )


@lowers("unfold")
def unfold(builder: Builder, tensor: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements, `step` apart, in a new last dimension."""
    shape = builder.meta.shape
    if not tensor.shape:
        return builder.reshape(tensor, shape)
    dim = dimension(dim, len(tensor.shape))
    strides = row_major(tensor.shape).strides
    moved = tuple(multiply(s, step) if d == dim else s for d, s in enumerate(strides))
    return builder.view(tensor, Layout(shape, (*moved, strides[dim])), shape)


@lowers("as_strided", "as_strided_copy")
def as_strided(
    builder: Builder,
    tensor: Tensor,
    size: Sequence[Size],
    stride: Sequence[Size],
    storage_offset: Size | None = None,
) -> Tensor:
    """A view of the value's memory, which starts at the storage's start unless in `offsets`."""
    if storage_offset is None:
        if len(tensor.view) > 1:
            raise NoLowering("as_strided of a value that is not in memory")
        start = tensor.view[0].offset if tensor.view else 0
    else:
        first = builder.offsets.get(tensor.value, 0)
        if first is None:
            raise NoLowering("the start of the storage is unknown")
        start = subtract(storage_offset, first)
    shape = builder.meta.shape
    if 0 in shape:
        return Tensor(tensor.value, (), shape, tensor.dtype)
    value = builder.graph.values()[tensor.value]
    memory = span(value.shape, value.strides) if isinstance(value, OnStrides) else extent(value)
    if not at_least(start, 0) or not at_least(memory, add(start, span(shape, stride))):
        raise NoLowering("as_strided beyond the elements of the tensor")
    layout = Layout(shape, tuple(stride), start)
    view = () if layout.is_identity() else (layout,)
    return Tensor(tensor.value, view, shape, tensor.dtype)


OnStrides = Input | Result


@lowers("flip", "prims.rev")
def flipped(builder: Builder, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    layout = flip(tensor.shape, dimensions(dims, len(tensor.shape)))
    return builder.view(tensor, layout, tensor.shape)


@lowers("repeat", "tile")
def repeat(builder: Builder, tensor: Tensor, repeats: Sequence[Size]) -> Tensor:
    """Each dimension becomes two digits: the repetition (stride 0) and the index within it."""
    shape = builder.meta.shape
    lead = len(shape) - len(tensor.shape)
    sizes: list[Size] = list(shape[:lead])
    strides: list[Size] = [0] * lead
    counts = (1,) * (len(tensor.shape) - len(repeats)) + tuple(repeats)
    whole = row_major(tensor.shape).strides
    for size, stride, count in zip(tensor.shape, whole, counts[lead:], strict=True):
        sizes += [count, size]
        strides += [0, stride]
    return builder.view(tensor, Layout(tuple(sizes), tuple(strides)), shape)
