"""Average pooling, and its gradient for windows that tile the image.

The elements of a window are summed in ATen's order, row by row, and those beyond the border count
as zero. Source: aten/src/ATen/native/cpu/AvgPoolKernel.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from math import prod
from operator import add

from tcw.compiler.loops.dtypes import FLOATS, compute_dtype
from tcw.compiler.loops.layouts import Layout, Shape, row_major
from tcw.compiler.loops.sizes import Size, multiply, subtract
from tcw.compiler.lowering.builder import Builder, storage_order, strides_in
from tcw.compiler.lowering.dimensions import with_size
from tcw.compiler.lowering.elements import Element, apply, position
from tcw.compiler.lowering.joins import place
from tcw.compiler.lowering.reduction import reduce_formula, same
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor
from tcw.compiler.lowering.unfolding import Side, overlapping
from tcw.compiler.lowering.views import piece
from tcw.compiler.lowering.windows import (
    MOST,
    Uneven,
    Windows,
    each,
    in_tiles,
    several_sizes,
    tiles,
)


def _avg_pool(
    rank: int,
    builder: Builder,
    tensor: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    dtype = builder.meta.dtype
    windows = Windows(builder, tensor, rank, kernel, stride, padding)
    divisor: Element | int = divisor_override or windows.elements
    if not (divisor_override or windows.inside() or (count_include_pad and not ceil_mode)):
        divisor = windows.counted(padded=count_include_pad).to(windows.compute)
    divide = "div" if dtype in FLOATS else "trunc_divide"
    mean = apply(divide, reduce(add, windows.seen(0)), divisor)
    return builder.map(mean.to(dtype).expression)


for _rank in (1, 2, 3):
    lowers(f"avg_pool{_rank}d")(partial(_avg_pool, _rank))


@lowers("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(builder: Builder, image: Tensor, size: Sequence[Size]) -> Tensor:
    """Windows of one size tile the image; others are summed along one dimension after the other."""
    meta = builder.meta
    if meta.dtype not in FLOATS:
        raise NoLowering("integers")
    if several_sizes(image.shape, meta.shape, 2):
        return _adaptive(builder, image)
    sizes = tiles(image.shape, meta.shape, 2)
    if prod(sizes) > MOST:
        return _reduced(builder, image, sizes)
    windows = Windows(builder, image, 2, sizes)
    mean = reduce(add, windows.seen(0)) / sizes[0] / sizes[1]
    return builder.map(mean.to(meta.dtype).expression)


def _reduced(builder: Builder, image: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The means of large windows that tile an image: a reduction over two dimensions of six."""
    tiled, dims = in_tiles(builder, image, sizes)
    compute = compute_dtype(builder.meta.dtype)
    total = reduce_formula(builder, "sum", same, (tiled,), dims, compute)
    return builder.pointwise(
        [total], lambda x: (Element(x) / sizes[0] / sizes[1]).expression, compute=compute
    )


def _adaptive(builder: Builder, image: Tensor) -> Tensor:
    """Rows first: they are summed as vectors, and leave fewer elements for the columns."""
    dims = _pooled(image.shape, builder.meta.shape)
    for dim in dims:
        uneven = Uneven(image.shape[dim], builder.meta.shape[dim])
        image = _summed(builder, image, dim, uneven, last=dim == dims[-1], mean=True)
    return image


def _pooled(whole: Shape, windows: Shape) -> list[int]:
    """Which of the last two dimensions have windows of more than one element."""
    rank = len(whole)
    return [dim for dim in (rank - 2, rank - 1) if whole[dim] != windows[dim]]


def _summed(
    builder: Builder, tensor: Tensor, dim: int, uneven: Uneven, *, last: bool, mean: bool
) -> Tensor:
    """The sums, or means, of a tensor's windows along one dimension. `last`: as the operation's
    result; otherwise in the dtype that sums are computed in."""
    shape = with_size(tensor.shape, dim, uneven.count)
    order = storage_order(builder.meta.shape, builder.meta.strides)
    compute = compute_dtype(builder.meta.dtype)
    total = uneven.total(builder, tensor, dim, shape, order, compute)
    if mean:
        total = total / uneven.width(position(shape, dim, order)).to(compute)
    dtype = builder.meta.dtype if last else compute
    return builder.map(total.to(dtype).expression, Meta(shape, strides_in(shape, order), dtype))


def _avg_pool_backward(
    rank: int,
    builder: Builder,
    grad: Tensor,
    image: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Windows side by side are broadcast; each pixel sums those of others that it lies in."""
    if builder.meta.dtype not in FLOATS:
        raise NoLowering("integers")
    kernel, padding = each(kernel, rank), each(padding, rank)
    stride = each(stride or kernel, rank)
    divisor = divisor_override or prod(kernel)
    if kernel == stride and not any(padding) and not ceil_mode:
        return _spread(builder, grad, kernel, (divisor,))
    if not divisor_override and (ceil_mode or (any(padding) and not count_include_pad)):
        raise NoLowering("windows of several sizes")
    lead = len(builder.meta.shape) - rank
    sides = [
        Side(lead + d, kernel[d], stride[d], window=lead + d, padding=padding[d])
        for d in range(rank)
    ]
    total = overlapping(builder, grad, sides) / divisor
    return builder.map(total.to(builder.meta.dtype).expression)


for _rank in (2, 3):
    lowers(f"avg_pool{_rank}d_backward")(partial(_avg_pool_backward, _rank))


@lowers("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(builder: Builder, grad: Tensor, image: Tensor) -> Tensor:
    meta = builder.meta
    if meta.dtype in FLOATS and several_sizes(meta.shape, grad.shape, 2):
        return _adaptive_backward(builder, grad)
    sizes = tiles(builder.meta.shape, grad.shape, 2)
    return _spread(builder, grad, sizes, sizes)


def _adaptive_backward(builder: Builder, grad: Tensor) -> Tensor:
    """Each pixel gets a share from the windows that it lies in: those of the gradient's image, with
    the sizes exchanged. Columns first, which are fewer then."""
    shape = grad.shape
    compute = compute_dtype(builder.meta.dtype)
    order = storage_order(builder.meta.shape, builder.meta.strides)
    share = Element(builder.load(grad, shape, order)).to(compute)
    dims = _pooled(builder.meta.shape, shape)
    for dim in dims:
        forward = Uneven(builder.meta.shape[dim], shape[dim])
        share = share / forward.width(position(shape, dim, order)).to(compute)
    spread = builder.map(share.expression, Meta(shape, strides_in(shape, order), compute))
    for dim in reversed(dims):
        uneven = Uneven(shape[dim], builder.meta.shape[dim])
        spread = _summed(builder, spread, dim, uneven, last=dim == dims[0], mean=False)
    return spread


def _spread(
    builder: Builder, grad: Tensor, sizes: tuple[int, ...], divisors: tuple[int, ...]
) -> Tensor:
    """Broadcast each window's gradient to its pixels, with stride-0 digits. Pixels at the ends that
    lie in no window get 0."""
    meta = builder.meta
    if meta.dtype not in FLOATS:
        raise NoLowering("integers")
    first = len(meta.shape) - len(sizes)
    strides = row_major(grad.shape).strides
    digits, steps = list(grad.shape[:first]), list(strides[:first])
    covered = list(meta.shape[:first])
    for d, size in enumerate(sizes):
        digits += [grad.shape[first + d], size]
        steps += [strides[first + d], 0]
        covered.append(multiply(grad.shape[first + d], size))
    shown = builder.view(grad, Layout(tuple(digits), tuple(steps)), tuple(covered))
    order = storage_order(meta.shape, meta.strides)
    made = Meta(tuple(covered), strides_in(tuple(covered), order), meta.dtype)
    spread = builder.pointwise(
        [shown],
        lambda x: reduce(lambda x, divisor: x / divisor, divisors, Element(x)).expression,
        compute=compute_dtype(meta.dtype),
        meta=made,
    )
    if tuple(covered) == meta.shape:
        return spread
    whole = builder.buffer()
    inside = whole
    for dim in range(first, len(meta.shape)):
        rest = subtract(meta.shape[dim], covered[dim])
        if rest != 0:
            place(builder, piece(builder, inside, dim, covered[dim], rest), 0)
            inside = piece(builder, inside, dim, 0, covered[dim])
    place(builder, inside, spread)
    return whole
