"""Layer, RMS and group normalisation, and their gradients. See also `batch_normalization.py`.

For 16-bit inputs, statistics are computed and held in float32, and rounded only as results of the
operation. Sources: aten/src/ATen/native/cpu/layer_norm_kernel.cpp, group_norm_kernel.cpp,
torch/_decomp/decompositions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.loops.dtypes import compute_dtype
from compiler.loops.layouts import Shape, expand
from compiler.loops.sizes import Size, divide, multiply
from compiler.lowering.builder import Builder
from compiler.lowering.elements import Element, formula_map, rsqrt
from compiler.lowering.reduction import count, dense, finish, over_count, reduce_formula
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Meta, Tensor
from compiler.lowering.variance import moments

FLOAT32_EPSILON = 2.0**-23
FLOAT64_EPSILON = 2.0**-52


def total(
    builder: Builder,
    formula: Callable[..., Element],
    operands: Sequence[Tensor],
    dims: Sequence[int],
    compute: str,
    *,
    dtype: str = "",
    keepdim: bool = True,
    name: str = "sum",
) -> Tensor:
    """The sum of a formula over some dimensions of the first operand."""
    return reduce_formula(
        builder,
        "sum",
        formula,
        operands,
        dims,
        keepdim=keepdim,
        compute=compute,
        dtype=dtype or compute,
        name=name,
    )


def shown(builder: Builder, tensor: Tensor, meta: Meta | None) -> Tensor | None:
    """A statistic in the dtype and shape in which the operation returns it."""
    if meta is None:
        return None
    if tensor.dtype == meta.dtype:
        return builder.reshape(tensor, meta.shape)
    return finish(builder, lambda e: e, (tensor,), tensor.dtype, meta)


def statistics(
    builder: Builder, x: Tensor, dims: Sequence[int], eps: float, compute: str
) -> tuple[Tensor, Tensor]:
    """The mean and 1/sqrt(variance + eps), with the reduced dimensions kept as size 1."""
    centre, squares = moments(builder, x, dims, compute)
    size = count(x, dims)
    rstd = finish(
        builder,
        lambda s: rsqrt(over_count(s, size) + eps),
        (squares,),
        compute,
        dense(squares.shape, compute),
        "rstd",
    )
    return centre, rstd


def normalized(
    x: Element, mean: Element, rstd: Element, weight: Element | None, bias: Element | None
) -> Element:
    answer = (x - mean) * rstd
    if weight is not None:
        answer = answer * weight
    return answer if bias is None else answer + bias


def inner(x: Tensor, shape: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The dimensions before the normalised ones, and the normalised ones."""
    rank = len(x.shape)
    return list(range(rank - len(shape))), list(range(rank - len(shape), rank))


@lowers("native_layer_norm")
def layer_norm(
    builder: Builder,
    x: Tensor,
    shape: Sequence[Any],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor | None, ...]:
    compute = compute_dtype(x.dtype)
    mean, rstd = statistics(builder, x, inner(x, shape)[1], eps, compute)
    answer = formula_map(builder, normalized, (x, mean, rstd, weight, bias), compute=compute)
    return answer, shown(builder, mean, builder.metas[1]), shown(builder, rstd, builder.metas[2])


def _times(grad: Element, weight: Element | None) -> Element:
    return grad if weight is None else grad * weight


def _with(operands: Sequence[Tensor], weight: Tensor | None) -> Sequence[Tensor]:
    return operands if weight is None else (*operands, weight)


@lowers("native_layer_norm_backward")
def layer_norm_backward(
    builder: Builder,
    grad: Tensor,
    x: Tensor,
    shape: Sequence[Any],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """dx = rstd * (g - mean(g) - x̂ * mean(g * x̂)) with g = grad * weight, x̂ = (x - mean)*rstd."""
    compute = compute_dtype(x.dtype)
    outer_dims, inner_dims = inner(x, shape)
    size = count(x, inner_dims)

    def hat(e: Element, m: Element, r: Element) -> Element:
        return (e - m) * r

    dx = None
    if mask[0]:
        plain = total(
            builder, lambda g, w=None: _times(g, w), _with((grad,), weight), inner_dims, compute
        )
        along = total(
            builder,
            lambda g, e, m, r, w=None: _times(g, w) * hat(e, m, r),
            _with((grad, x, mean, rstd), weight),
            inner_dims,
            compute,
        )

        def formula(
            g: Element, e: Element, m: Element, r: Element, p: Element, a: Element, w: Any = None
        ) -> Element:
            mean_gradient = over_count(p + hat(e, m, r) * a, size)
            return r * (_times(g, w) - mean_gradient)

        dx = formula_map(
            builder, formula, _with((grad, x, mean, rstd, plain, along), weight), compute=compute
        )
    dweight = dbias = None
    if mask[1] and weight is not None:
        dweight = total(
            builder,
            lambda g, e, m, r: g * hat(e, m, r),
            (grad, x, mean, rstd),
            outer_dims,
            compute,
            dtype=weight.dtype,
            keepdim=False,
        )
    if mask[2] and bias is not None:
        dbias = total(
            builder,
            lambda g: g,
            (grad,),
            outer_dims,
            compute,
            dtype=bias.dtype,
            keepdim=False,
        )
    return dx, dweight, dbias


@lowers("_fused_rms_norm")
def rms_norm(
    builder: Builder,
    x: Tensor,
    shape: Sequence[Any],
    weight: Tensor | None,
    eps: float | None,
) -> tuple[Tensor | None, ...]:
    compute = compute_dtype(x.dtype)
    if eps is None:
        eps = FLOAT32_EPSILON if compute == "float32" else FLOAT64_EPSILON
    dims = inner(x, shape)[1]
    size, added = count(x, dims), eps
    squares = total(builder, lambda e: e * e, (x,), dims, compute, name="squares")
    rstd = finish(
        builder,
        lambda s: rsqrt(over_count(s, size) + added),
        (squares,),
        compute,
        dense(squares.shape, compute),
        "rstd",
    )
    answer = formula_map(
        builder, lambda e, r, w=None: _times(e * r, w), _with((x, rstd), weight), compute=compute
    )
    return answer, shown(builder, rstd, builder.metas[1])


@lowers("_fused_rms_norm_backward")
def rms_norm_backward(
    builder: Builder,
    grad: Tensor,
    x: Tensor,
    shape: Sequence[Any],
    rstd: Tensor,
    weight: Tensor | None,
    mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """dx = rstd * (g - x̂ * mean(g * x̂)) with g = grad * weight, x̂ = x * rstd."""
    compute = compute_dtype(x.dtype)
    outer_dims, inner_dims = inner(x, shape)
    size = count(x, inner_dims)
    dx = dweight = None
    if mask[0]:
        along = total(
            builder,
            lambda g, e, r, w=None: _times(g, w) * (e * r),
            _with((grad, x, rstd), weight),
            inner_dims,
            compute,
        )
        dx = formula_map(
            builder,
            lambda g, e, r, a, w=None: r * (_times(g, w) - e * r * over_count(a, size)),
            _with((grad, x, rstd, along), weight),
            compute=compute,
        )
    if mask[1] and weight is not None:
        dweight = total(
            builder,
            lambda g, e, r: g * (e * r),
            (grad, x, rstd),
            outer_dims,
            compute,
            dtype=weight.dtype,
            keepdim=False,
        )
    return dx, dweight


def spread(builder: Builder, tensor: Tensor, wide: Shape, shape: Shape) -> Tensor:
    """The tensor broadcast to `wide` and reshaped to `shape`, which has as many elements."""
    broadcast = builder.view(tensor, expand(tensor.shape, wide), wide)
    return builder.reshape(broadcast, shape)


def _in_groups(batch: Size, channels: Size, area: Size, groups: int) -> tuple[Shape, Size]:
    """(batch, groups, channels per group, area), and the number of channels per group."""
    each = divide(channels, groups)
    if each is None:
        raise NoLowering("channels that do not divide into groups")
    return (batch, groups, each, area), each


@lowers("native_group_norm")
def group_norm(
    builder: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: Size,
    channels: Size,
    area: Size,
    groups: int,
    eps: float,
) -> tuple[Tensor | None, ...]:
    compute = compute_dtype(x.dtype)
    wide, each = _in_groups(batch, channels, area, groups)
    rows = builder.reshape(x, (batch, groups, multiply(each, area)))
    mean, rstd = statistics(builder, rows, [2], eps, compute)

    def along(tensor: Tensor, shape: Shape) -> Tensor:
        return spread(builder, builder.reshape(tensor, shape), wide, x.shape)

    operands: list[Tensor | None] = [x]
    operands += [along(t, (batch, groups, 1, 1)) for t in (mean, rstd)]
    operands += [along(t, (groups, each, 1)) if t else t for t in (weight, bias)]
    answer = formula_map(builder, normalized, operands, compute=compute)
    return answer, shown(builder, mean, builder.metas[1]), shown(builder, rstd, builder.metas[2])


@lowers("native_group_norm_backward")
def group_norm_backward(
    builder: Builder,
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    batch: Size,
    channels: Size,
    area: Size,
    groups: int,
    mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """From the sums of grad*x and of grad per channel: all gradients are linear in them."""
    compute = compute_dtype(x.dtype)
    wide, each = _in_groups(batch, channels, area, groups)
    planes = (batch, channels, area)
    grads, inputs = builder.reshape(grad, planes), builder.reshape(x, planes)
    products = total(builder, lambda g, e: g * e, (grads, inputs), [2], compute, keepdim=False)
    sums = total(builder, lambda g: g, (grads,), [2], compute, keepdim=False)
    in_groups: Shape = (batch, groups, each)
    products, sums = (builder.reshape(t, in_groups) for t in (products, sums))
    mean, rstd = (builder.reshape(t, (batch, groups, 1)) for t in (mean, rstd))
    gamma = builder.reshape(weight, (groups, each)) if weight is not None else None
    dx = dweight = dbias = None
    if mask[0]:
        of_products, of_sums = (
            total(builder, lambda s, w=None: _times(s, w), _with((t,), gamma), [2], compute)
            for t in (products, sums)
        )
        size = multiply(each, area)
        small = dense((batch, groups, 1), compute)
        slope = formula_map(
            builder,
            lambda b, m, d, r: over_count((b * m - d) * r * r * r, size),
            (of_sums, mean, of_products, rstd),
            meta=small,
            name="slope",
        )
        shift = formula_map(
            builder,
            lambda c, m, b, r: -c * m - over_count(b * r, size),
            (slope, mean, of_sums, rstd),
            meta=small,
            name="shift",
        )

        def along(tensor: Tensor, shape: Shape) -> Tensor:
            return spread(builder, builder.reshape(tensor, shape), wide, x.shape)

        of_group: Shape = (batch, groups, 1, 1)
        operands = [grad, x, *(along(t, of_group) for t in (rstd, slope, shift))]
        wide_gamma = along(gamma, (groups, each, 1)) if gamma is not None else None
        dx = formula_map(
            builder,
            lambda g, e, r, c, d, w=None: g * _times(r, w) + e * c + d,
            _with(operands, wide_gamma),
            compute=compute,
        )
    dtype = weight.dtype if weight is not None else x.dtype
    if mask[1]:
        dweight = total(
            builder,
            lambda d, b, m, r: (d - b * m) * r,
            (products, sums, mean, rstd),
            [0],
            compute,
            dtype=dtype,
            keepdim=False,
        )
        dweight = builder.reshape(dweight, (channels,))
    if mask[2]:
        dbias = total(builder, lambda b: b, (sums,), [0], compute, dtype=dtype, keepdim=False)
        dbias = builder.reshape(dbias, (channels,))
    return dx, dweight, dbias
