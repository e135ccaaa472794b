"""Functions that a wrapper's text calls, besides ATen and segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook, Missing, resolve

Sizes = Sequence[int]

_CHECK = "torch:_C._dynamo.guards.assert_size_stride"
_VIEW = "torch:_C._dynamo.guards._reinterpret_tensor"
"""Functions of torch/csrc/dynamo/guards.cpp, also called by Inductor's wrappers."""

HOOK = Hook(
    name="wrapper calls",
    offers="strides checked and memory reinterpreted in C++, in calls through Python",
    needs=(_CHECK, _VIEW),
    test="runtime/test_wrapper.py",
)


def _of_torch(need: str) -> Callable[..., Any] | None:
    try:
        return resolve(need)  # type: ignore[return-value]
    except Missing:
        return None


_check = _of_torch(_CHECK)


def laid_out(tensor: Any, sizes: Sizes, strides: Sizes) -> Any:
    """The tensor with these strides: itself, or a copy. Its sizes must match the predicted ones.

    A fake tensor predicts an operation's strides; a library may return others.
    """
    if _check is not None:
        try:
            _check(tensor, sizes, strides)
            return tensor
        except AssertionError:
            pass
    if tuple(tensor.shape) != tuple(sizes):
        raise RuntimeError(f"an ATen call returned {tuple(tensor.shape)}, not {tuple(sizes)}")
    if tensor.stride() == tuple(strides):
        return tensor
    copy = torch.empty_strided(sizes, strides, dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)


def row_by_row(tensor: Any) -> Any:
    """The tensor made contiguous, as its fake tensor predicted: itself, or a copy."""
    return tensor.contiguous()


def _strided(tensor: Any, sizes: Sizes, strides: Sizes, offset: int) -> Any:
    return torch.as_strided(tensor, sizes, strides, tensor.storage_offset() + offset)


reinterpreted = _of_torch(_VIEW) or _strided
"""Other sizes and strides on the same memory; `offset` is in elements from its start."""


def retyped(tensor: Any, dtype: Any, sizes: Sizes, strides: Sizes, offset: int) -> Any:
    """The same memory as another dtype; `offset` is in elements of that dtype."""
    start = tensor.storage_offset() * tensor.element_size() // dtype.itemsize
    made = torch.empty(0, dtype=dtype, device=tensor.device)
    return made.set_(tensor.untyped_storage(), start + offset, sizes, strides)
