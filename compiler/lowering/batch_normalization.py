"""Batch normalisation: in training, with running statistics, and its gradient.

Running statistics are returned as new tensors. If ATen updates them in place, the graph has a
separate copy for that. Sources: aten/src/ATen/native/Normalization.cpp,
native/cpu/batch_norm_kernel.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.loops.dtypes import compute_dtype
from compiler.loops.layouts import Shape
from compiler.lowering.builder import Builder
from compiler.lowering.elements import Element, formula_map, rsqrt
from compiler.lowering.normalization import normalized, shown, total
from compiler.lowering.reduction import count, dense, finish, over_count
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Meta, Tensor
from compiler.lowering.variance import moments

Statistics = tuple[Tensor, Tensor]


def _planes(x: Tensor) -> list[int]:
    """All dimensions except the channels."""
    return [d for d in range(len(x.shape)) if d != 1]


def _of_channels(builder: Builder, tensor: Tensor, x: Tensor) -> Tensor:
    """(channels,) -> (1, channels, 1, …)."""
    shape: Shape = tuple(size if d == 1 else 1 for d, size in enumerate(x.shape))
    return builder.reshape(tensor, shape)


def _running(builder: Builder, x: Tensor, mean: Tensor, variance: Tensor, eps: float) -> Statistics:
    """The running mean and 1/sqrt(running variance + eps), shaped like the channels."""
    compute = compute_dtype(x.dtype)
    shaped = _of_channels(builder, variance, x)
    rstd = formula_map(
        builder,
        lambda v: rsqrt(v + eps),
        (shaped,),
        meta=dense(shaped.shape, compute),
        name="rstd",
    )
    return _of_channels(builder, mean, x), rstd


def _normalize(
    builder: Builder, x: Tensor, of: Statistics, weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    scale, shift = (
        None if tensor is None else _of_channels(builder, tensor, x) for tensor in (weight, bias)
    )
    return formula_map(builder, normalized, (x, *of, scale, shift), compute=compute_dtype(x.dtype))


def _train(
    builder: Builder, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[tuple[Tensor | None, ...], Tensor, Tensor]:
    """The operation's (output, mean, 1/std), then the mean and the sum of squares."""
    compute, dims = compute_dtype(x.dtype), _planes(x)
    size = count(x, dims)
    mean, squares = moments(builder, x, dims, compute)
    rstd = finish(
        builder,
        lambda s: rsqrt(over_count(s, size) + eps),
        (squares,),
        compute,
        dense(squares.shape, compute),
        "rstd",
    )
    output = _normalize(builder, x, (mean, rstd), weight, bias)
    metas = builder.metas
    return (
        (output, shown(builder, mean, metas[1]), shown(builder, rstd, metas[2])),
        mean,
        squares,
    )


def _updated(
    builder: Builder,
    x: Tensor,
    mean: Tensor,
    squares: Tensor,
    running: tuple[Tensor, Tensor],
    momentum: float,
    metas: Sequence[Meta | None],
) -> tuple[Tensor | None, ...]:
    """The running mean and variance, updated towards those of this batch."""
    size = count(x, _planes(x))
    if not isinstance(size, int):
        raise NoLowering("running statistics of a batch of symbolic size")

    def variance(s: Element) -> Element:
        return s / max(size - 1, 0)

    def moved(
        old: Tensor, new: Tensor, of: Callable[[Element], Element], meta: Meta | None
    ) -> Tensor | None:
        if meta is None:
            return None
        return formula_map(
            builder,
            lambda s, r: momentum * of(s) + (1 - momentum) * r,
            (builder.reshape(new, old.shape), old),
            compute=new.dtype,
            meta=meta,
        )

    return (
        moved(running[0], mean, lambda m: m, metas[0]),
        moved(running[1], squares, variance, metas[1]),
    )


def _nothing(builder: Builder, meta: Meta | None) -> Tensor | None:
    return None if meta is None else formula_map(builder, lambda: 0, (), meta=meta)


@lowers("_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(
    builder: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    return _train(builder, x, weight, bias, eps)[0]


@lowers("_native_batch_norm_legit_no_training")
def batch_norm_no_training(
    builder: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    output = _normalize(builder, x, _running(builder, x, mean, variance, eps), weight, bias)
    return output, *(_nothing(builder, meta) for meta in builder.metas[1:])


lowers("_batch_norm_no_update")(batch_norm_no_training)


@lowers("_native_batch_norm_legit_functional")
def batch_norm_functional(
    builder: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    metas = builder.metas
    if not training:
        output = _normalize(builder, x, _running(builder, x, mean, variance, eps), weight, bias)
        return output, _nothing(builder, metas[1]), _nothing(builder, metas[2]), mean, variance
    answers, centre, squares = _train(builder, x, weight, bias, eps)
    news = _updated(builder, x, centre, squares, (mean, variance), momentum, metas[3:])
    return *answers, *news


@lowers("_batch_norm_with_update_functional")
def batch_norm_with_update(
    builder: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    """The fourth result is cuDNN's reserve; it is empty here."""
    metas = builder.metas
    answers, centre, squares = _train(builder, x, weight, bias, eps)
    news = _updated(builder, x, centre, squares, (mean, variance), momentum, metas[4:])
    return *answers, _nothing(builder, metas[3]), *news


@lowers("native_batch_norm_backward", "batch_norm_backward")
def batch_norm_backward(
    builder: Builder,
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_variance: Tensor | None,
    save_mean: Tensor | None,
    save_rstd: Tensor | None,
    train: bool,
    eps: float,
    mask: Sequence[bool],
    reserve: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    if train:
        if save_mean is None or save_rstd is None:
            raise NoLowering("no statistics of the batch")
        of = _of_channels(builder, save_mean, x), _of_channels(builder, save_rstd, x)
    else:
        if running_mean is None or running_variance is None:
            raise NoLowering("no running statistics")
        of = _running(builder, x, running_mean, running_variance, eps)
    return _backward(builder, grad, x, weight, of, train, mask)


def _backward(
    builder: Builder,
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    of: Statistics,
    train: bool,
    mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """dx = scale * (g - mean(g) - (x - m) * rstd² * mean(g * (x - m))), scale = weight * rstd.

    With running statistics, which do not depend on x, dx is scale * g.
    """
    mean, rstd = of
    compute, dims = compute_dtype(x.dtype), _planes(x)
    size = count(x, dims)
    plain = total(builder, lambda g: g, (grad,), dims, compute)
    along = total(builder, lambda g, e, m: g * (e - m), (grad, x, mean), dims, compute)
    scale = None if weight is None else _of_channels(builder, weight, x)

    def formula(
        g: Element, e: Element, m: Element, r: Element, p: Element, a: Element, w: Element | None
    ) -> Element:
        if train:
            g = g - (e - m) * (over_count(a, size) * (r * r)) - over_count(p, size)
        return g * (r if w is None else r * w)

    dx = dweight = dbias = None
    if mask[0]:
        dx = formula_map(
            builder,
            formula,
            (grad, x, mean, rstd, plain, along, scale),
            compute=compute,
            meta=builder.metas[0],
        )
    if mask[1] and builder.metas[1]:
        dweight = finish(builder, lambda a, r: a * r, (along, rstd), compute, builder.metas[1])
    if mask[2] and builder.metas[2]:
        dbias = shown(builder, plain, builder.metas[2])
    return dx, dweight, dbias
