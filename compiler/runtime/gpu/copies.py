"""Copies of tensors that keep strides, whatever they are: gaps, and dimensions of stride 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def room_like(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with the same sizes and strides, in memory of its own, not yet written."""
    if tensor.numel() == 0:
        return torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
        )
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    span = 1 + sum((size - 1) * stride for size, stride in pairs)
    whole = torch.empty(span, dtype=tensor.dtype, device=tensor.device)
    return whole.as_strided(tensor.shape, tensor.stride())


def once(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with one element for each place in memory: expanded dimensions have size 1."""
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def copy_all(into: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
    """Copy each tensor into the room of the same sizes and strides."""
    if not into:
        return
    with torch.no_grad():
        torch._foreach_copy_(list(map(once, into)), list(map(once, tensors)))
