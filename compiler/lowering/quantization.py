"""Fake quantisation: floats rounded to the values that a quantised tensor can represent.

Each operation returns the rounded value and a mask of the elements within the range, which is all
that the gradient needs. Source: aten/src/ATen/native/quantized/cpu/kernels/QuantizedOpKernels.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcw.compiler.loops.dtypes import rounded
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import Element, formula_map, minimum, nearest, where
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor

LARGEST_STEP = 2.0**63
"""ATen's per-channel quantisation counts steps in int64: a value outside its range, NaN included,
becomes the minimum."""


@lowers("fake_quantize_per_tensor_affine_cachemask")
def per_tensor(
    builder: Builder, x: Tensor, scale: float, zero: int, least: int, greatest: int
) -> tuple[Tensor, Tensor | None]:
    _check(x)
    width = rounded(scale, "float32")
    if not width:
        raise NoLowering("steps of zero width")
    inverse = rounded(1.0 / width, "float32")  # as the quotient of two float32 is

    def steps(value: Element) -> Element:
        return _steps(value * inverse, zero)

    return _both(
        builder,
        (x,),
        lambda value: (_clamped(steps(value), least, greatest) - zero) * width,
        lambda value: _within(steps(value), least, greatest),
    )


@lowers("fake_quantize_per_channel_affine_cachemask")
def per_channel(
    builder: Builder, x: Tensor, scale: Tensor, zero: Tensor, axis: int, least: int, greatest: int
) -> tuple[Tensor, Tensor | None]:
    _check(x)
    rank = len(x.shape)
    shape = tuple(size if d == axis % rank else 1 for d, size in enumerate(x.shape))
    scale, zero = builder.reshape(scale, shape), builder.reshape(zero, shape)

    def steps(value: Element, width: Element, zero: Element) -> Element:
        element = _steps(value * (1 / width), zero)
        return where(abs(element) < LARGEST_STEP, element, -LARGEST_STEP)

    return _both(
        builder,
        (x, scale, zero),
        lambda value, width, zero: (
            (_clamped(steps(value, width, zero), least, greatest) - zero) * width
        ),
        lambda value, width, zero: _within(steps(value, width, zero), least, greatest),
    )


def _check(x: Tensor) -> None:
    if x.dtype != "float32":
        raise NoLowering("steps of a dtype other than float32")


def _both(
    builder: Builder,
    operands: Sequence[Tensor],
    value: Callable[..., Element],
    mask: Callable[..., Element],
) -> tuple[Tensor, Tensor | None]:
    """The two results, each with its own loop; the mask only if it is used."""
    rounded, within = builder.metas
    assert rounded is not None
    tensor = formula_map(builder, value, operands, meta=rounded)
    if within is None or 1 in builder.unread:
        return tensor, None
    name = f"{builder.node}_mask"
    return tensor, formula_map(builder, mask, operands, compute="float32", meta=within, name=name)


def _steps(quotient: Element, zero: Element | int) -> Element:
    """The quantisation step of a value, as a float."""
    return nearest(quotient) + zero


def _clamped(step: Element, least: int, greatest: int) -> Element:
    """The step clamped to the range; NaN becomes the least step."""
    return minimum(where(step >= least, step, least), greatest)


def _within(step: Element, least: int, greatest: int) -> Element:
    return (step >= least) & (step <= greatest)
