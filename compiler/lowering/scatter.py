"""Writes at positions given by a tensor: stores with index terms into a buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcw.compiler.loops.dtypes import REDUCED, compute_dtype
from tcw.compiler.loops.expressions import Expression
from tcw.compiler.loops.graph import StoreMode
from tcw.compiler.loops.layouts import Layout, Shape, row_major
from tcw.compiler.loops.operators import identity
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.builder import Builder, Scalar, storage_order
from tcw.compiler.lowering.copies import MOST_REPEATS
from tcw.compiler.lowering.dimensions import dimension, with_size
from tcw.compiler.lowering.elements import Element, apply, formula_map, number, position, where
from tcw.compiler.lowering.indexing import (
    GATHER,
    INDEX,
    Indices,
    advanced,
    base,
    index_terms,
)
from tcw.compiler.lowering.registry import Lowered, NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor
from tcw.compiler.lowering.views import piece

SHORT = 8
"""Elements of a row from which a vector compares them with the row's index."""


def scattered(
    builder: Builder,
    tensor: Tensor,
    source: Tensor | Scalar,
    shape: Shape,
    dims: Mapping[int, int],
    indices: Mapping[int, Tensor],
    *,
    mode: StoreMode,
    wraps: bool,
    says: str,
) -> Tensor:
    """The tensor with the source written at each position of `shape`, or combined with it."""
    if mode != "set" and tensor.dtype == "bool" and not (mode == "add" and builder.on_cpu):
        raise NoLowering("adding booleans")
    if mode not in ("set", "add") and not builder.on_cpu:
        raise NoLowering(f"a scatter with {mode} on a GPU")
    if 0 in tensor.shape and 0 not in shape:
        raise NoLowering("an index into no elements")
    whole = builder.copied_to_write(tensor)
    if 0 in shape:
        return whole
    memory = builder.in_memory(whole)
    order = range(len(shape))
    builder.store(
        whole,
        source if isinstance(source, Tensor) else number(source, tensor.dtype).expression,
        view=(base(memory, shape, dims),),
        shape=shape,
        terms=index_terms(builder, memory, indices, shape, order, wraps=wraps, says=says),
        mode=mode,
    )
    return whole


@lowers("index_put")
def index_put(
    builder: Builder,
    tensor: Tensor,
    indices: Indices,
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    mask = next((i for i in indices if i is not None), None)
    if mask is not None and mask.dtype == "bool" and not accumulate:
        return _put_at_mask(builder, tensor, indices, values)
    found = advanced(builder, tensor, indices)
    return scattered(
        builder,
        tensor,
        values,
        found.shape,
        found.dims,
        found.indices,
        mode="add" if accumulate else "set",
        wraps=True,
        says=INDEX,
    )


def _put_at_mask(builder: Builder, tensor: Tensor, indices: Indices, values: Tensor) -> Tensor:
    """Fill the positions that a mask selects with one number."""
    places = [d for d, index in enumerate(indices) if index is not None]
    mask = indices[places[0]]
    if len(places) != 1 or mask is None or values.size != 1:
        raise NoLowering("a mask selects a data-dependent number of elements")
    before = places[0]
    shape = (
        *((1,) * before),
        *mask.shape,
        *((1,) * (len(tensor.shape) - before - len(mask.shape))),
    )
    mask = builder.reshape(mask, shape)
    return builder.map(_where(builder, mask, builder.reshape(values, ()), tensor, builder.meta))


def _where(builder: Builder, mask: Tensor, chosen: Tensor, other: Tensor, meta: Meta) -> Expression:
    order = storage_order(meta.shape, meta.strides)
    condition, yes, no = (
        Element(builder.load(tensor, meta.shape, order)) for tensor in (mask, chosen, other)
    )
    computed = compute_dtype(meta.dtype)
    return where(condition, yes.to(computed), no.to(computed)).expression


@dataclass(frozen=True, slots=True)
class _Positions:
    """Where an index writes along a dimension of a tensor."""

    builder: Builder
    dim: int
    index: Tensor
    slices: bool = False
    """The index has one dimension and names whole slices, as in `index_add`. Otherwise each of its
    elements names one element, as in `scatter`."""

    def write(self, tensor: Tensor, source: Tensor | Scalar, mode: StoreMode) -> Tensor:
        """The tensor with the source written there, or combined with what is there."""
        index, rank = self.index, len(tensor.shape)
        if not rank:
            kind = "" if self.slices else "a scatter into "
            raise NoLowering(f"{kind}a tensor without dimensions")
        if self.slices:
            dim = dimension(self.dim, rank)
            shape = with_size(tensor.shape, dim, index.size)
            if isinstance(source, Tensor) and source.shape and source.shape != shape:
                source = self.builder.reshape(source, shape)
            index = self.builder.reshape(index, (index.size, *((1,) * (rank - dim - 1))))
        else:
            shape = index.shape
            dim = dimension(self.dim, rank) if shape else 0
            if isinstance(source, Tensor) and source.shape != shape:
                source = corner(self.builder, source, shape)
        dims = {d: d for d in range(len(shape)) if d != dim}
        says = INDEX if self.slices and mode == "set" else GATHER
        return scattered(
            self.builder,
            tensor,
            source,
            shape,
            dims,
            {dim: index},
            mode=mode,
            wraps=False,
            says=says,
        )

    def combined(
        self, tensor: Tensor, source: Tensor, reduce: str, include_self: bool = True
    ) -> Tensor:
        """The tensor combined with the source there, by torch's word for a reduction."""
        mode, op = _COMBINED.get(reduce, ("set", ""))
        unknown_start = tensor.dtype == "bool" if self.slices else not tensor.shape
        if mode == "set" or (not include_self and unknown_start):
            raise NoLowering(f"{'index_reduce' if self.slices else 'scatter'} with {reduce}")
        wide = None if self.slices else _rounded_once(self.builder, tensor, mode)
        if wide is not None:
            whole = self.combined(wide, source, reduce, include_self)
            return self.builder.copy(whole, self.builder.meta)
        if not include_self:
            tensor = self._cleared(tensor, source, op)
        return self.write(tensor, source, mode)

    def _cleared(self, tensor: Tensor, source: Tensor, op: str) -> Tensor:
        """The tensor with the identity of a reduction there, to combine with."""
        if tensor.value in (self.index.value, source.value):
            self.builder.in_place = ""  # the second store still reads what the tensor holds
        found = self.write(tensor, identity(op, tensor.dtype).number, "set")
        self.builder.in_place = found.value  # a buffer of our own, written once more
        return found


@lowers("scatter")
def scatter(
    builder: Builder,
    tensor: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Scalar | None = None,
    *,
    value: Scalar | None = None,
    reduce: str | None = None,
) -> Tensor:
    source = src if value is None else value
    assert source is not None
    if reduce not in (None, "add"):
        raise NoLowering(f"scatter with {reduce}")
    if reduce is None:
        chosen = _one_hot(builder, tensor, dim, index, source)
        if chosen is not None:
            return chosen
    mode: StoreMode = "set" if reduce is None else "add"
    return _Positions(builder, dim, index).write(tensor, source, mode)


@lowers("scatter_add")
def scatter_add(builder: Builder, tensor: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return _Positions(builder, dim, index).combined(tensor, src, "sum")


_COMBINED: dict[str, tuple[StoreMode, str]] = {
    "sum": ("add", "sum"),
    "prod": ("mul", "prod"),
    "amax": ("maximum", "max"),
    "amin": ("minimum", "min"),
}
"""torch's word for a reduction -> how a store combines elements, and the reduction like it."""


def _rounded_once(builder: Builder, tensor: Tensor, mode: StoreMode) -> Tensor | None:
    """A 16-bit tensor as float32, in which ATen adds and multiplies; None if it is not needed."""
    wide = compute_dtype(tensor.dtype)
    if not builder.on_cpu or tensor.dtype not in REDUCED or mode not in ("add", "mul"):
        return None
    return builder.copy(tensor, replace(builder.meta, dtype=wide))


@lowers("scatter_reduce.two")
def scatter_reduce(
    builder: Builder,
    tensor: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    places = _Positions(builder, dim, index)
    if reduce == "mean":
        return _mean(places, tensor, src, include_self)
    return places.combined(tensor, src, reduce, include_self)


def _mean(places: _Positions, tensor: Tensor, src: Tensor, include_self: bool) -> Tensor:
    """A sum over a count, both rounded to the dtype of the tensor, as in ATen."""
    builder = places.builder
    meta = builder.meta
    total = places.combined(tensor, src, "sum", include_self)
    held = replace(meta, dtype=compute_dtype(meta.dtype))
    start = builder.map(number(int(include_self), held.dtype).expression, held)
    counts = places.write(start, 1, "add")

    def divided(total: Element, count: Element) -> Element:
        several = where(count > 1, count, 1)
        return total / several if total.is_float else apply("floor_divide", total, several)

    rounded = builder.copy(counts, meta) if held != meta else counts
    return formula_map(builder, divided, [total, rounded])


@lowers("index_reduce")
def index_reduce(
    builder: Builder,
    tensor: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    places = _Positions(builder, dim, index, slices=True)
    return places.combined(tensor, source, reduce, include_self)


def corner(builder: Builder, tensor: Tensor, shape: Shape) -> Tensor:
    """The leading `shape` elements of each dimension."""
    if not shape or not tensor.shape:
        return builder.reshape(tensor, shape)
    return builder.view(tensor, Layout(shape, row_major(tensor.shape).strides), shape)


def _one_hot(
    builder: Builder, tensor: Tensor, dim: int, index: Tensor, source: Tensor | Scalar
) -> Tensor | None:
    """Scatter to one position per row of a constant: a map that compares positions with the index.
    Very short rows that no operation reads are a store for each position: their elements
    interleave.

    This is the gradient of a cross entropy. Returns None for any other scatter, and for short rows
    that no operation reads.
    """
    filled = builder.constant_of(tensor)
    meta = builder.meta
    if filled is None or not meta.shape or 0 in meta.shape:
        return None
    dim = dimension(dim, len(meta.shape))
    if index.shape != with_size(meta.shape, dim, 1) or index.dtype != "int64":
        return None
    order = storage_order(meta.shape, meta.strides)
    computed = compute_dtype(meta.dtype)
    if isinstance(source, Tensor):
        source = corner(builder, source, index.shape)

    def chosen(place: Element, shape: Shape) -> Expression:
        element = apply("eq", place, Element(builder.load(index, shape, order)))
        if isinstance(source, Tensor):
            value = Element(builder.load(source, shape, order)).to(meta.dtype).to(computed)
        else:
            value = number(source, computed)
        return where(element, value, number(filled, computed)).to(meta.dtype).expression

    count = meta.shape[dim]
    is_short = isinstance(count, int) and 2 <= count < SHORT and order[-1] == dim
    if is_short and builder.on_cpu and builder.only_returned():
        assert isinstance(count, int)
        if count > MOST_REPEATS:
            return None
        whole = builder.buffer()
        for at in range(count):
            target = piece(builder, whole, dim, at, 1)
            one = chosen(number(at, "int64"), index.shape)
            builder.store(target, one, shape=index.shape, order=order)
        return whole
    return builder.map(chosen(position(meta.shape, dim, order), meta.shape))


@lowers("index_add")
def index_add(
    builder: Builder, tensor: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1
) -> Tensor:
    if alpha != 1:
        meta = builder.contiguous(source.shape, source.dtype)
        source = formula_map(builder, lambda x: x * alpha, [source], meta=meta)
    return _Positions(builder, dim, index, slices=True).write(tensor, source, "add")


@lowers("embedding_dense_backward")
def embedding_dense_backward(
    builder: Builder,
    gradient: Tensor,
    indices: Tensor,
    num_weights: Size,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Lowered:
    """Sum the rows of the gradient at their indices, skipping those of the padding index."""
    if scale_grad_by_freq:
        raise NoLowering("gradients scaled by frequency")
    meta = builder.meta
    whole = builder.buffer()
    builder.store(whole, number(0, meta.dtype).expression)
    shape = (indices.size, meta.shape[1])
    if 0 in shape or 0 in meta.shape:
        return whole
    memory = builder.in_memory(whole)
    index = builder.reshape(indices, (indices.size, 1))
    order = (0, 1)
    (row,) = index_terms(builder, memory, {0: index}, shape, order, wraps=False)
    source = Element(builder.load(builder.reshape(gradient, shape), shape, order))
    if isinstance(padding_idx, int) and padding_idx >= 0:
        padding = apply("eq", Element(row.index), padding_idx)
        computed = source.to(compute_dtype(source.dtype))
        source = where(padding, number(0, computed.dtype), computed)
    builder.store(
        whole,
        source.expression,
        view=(base(memory, shape, {1: 1}),),
        shape=shape,
        terms=[row],
        mode="add",
    )
    return whole
