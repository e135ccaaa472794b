"""Tensors and sizes, described without their data."""

from __future__ import annotations

from typing import Any

import torch

from tcw.compiler.trace.records import Size, TensorMeta
from tcw.compiler.trace.records.base import MOST

_SHORT_NAMES = {
    dtype: str(dtype).removeprefix("torch.")
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
}


def size(value: object) -> Size:
    """A size or stride, also one of Inductor's, which are sympy's: a number, or the expression as
    torch prints it. Adds no guard."""
    if isinstance(value, int):
        return value
    expression: Any = getattr(getattr(value, "node", None), "expr", value)
    return int(expression) if getattr(expression, "is_Integer", False) else str(expression)


def dtype_name(dtype: torch.dtype) -> str:
    """`torch.float32` -> `float32`."""
    return _SHORT_NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def tensor_meta(value: object) -> TensorMeta | None:
    """Describe a real, fake or subclass tensor; None for anything else. Never raises."""
    if not isinstance(value, torch.Tensor):
        return None
    try:
        shape = tuple(size(item) for item in value.shape)
    except Exception:  # a subclass may refuse, so nothing is known
        return None
    stride = None
    try:
        if value.layout is torch.strided:  # a sparse tensor may report zero strides
            stride = tuple(size(item) for item in value.stride())
    except Exception:  # other layouts have no strides
        stride = None
    return TensorMeta(
        shape=shape,
        dtype=dtype_name(value.dtype),
        stride=stride,
        device=str(value.device),
        bytes=element_bytes(shape, value.dtype),
        requires_grad=bool(value.requires_grad),
    )


def element_bytes(shape: tuple[Size, ...], dtype: torch.dtype) -> int | None:
    """numel * itemsize in bytes; None if a size is symbolic or the product exceeds 64 bits."""
    total = dtype.itemsize
    for item in shape:
        if not isinstance(item, int):
            return None
        total *= item
    return int(total) if total <= MOST else None
