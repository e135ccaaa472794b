"""Fake tensors: their metas, and whether loops support them."""

from __future__ import annotations

from typing import Any

import torch

from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.lowering.promotion import dtype_name
from tcw.compiler.lowering.registry import Unsupported
from tcw.compiler.lowering.sizes import Sizes
from tcw.compiler.lowering.tensors import Meta

_STRIDED = torch.strided


class FakeTensors:
    """The fake tensors of one graph."""

    def __init__(self, sizes: Sizes, device: torch.device | None) -> None:
        self.sizes = sizes
        self.device: Any = device
        """The device that loops run on; None until the first tensor is seen."""

    def meta(self, value: Any) -> Meta:
        """The shape, strides and dtype of a fake tensor."""
        if value.layout is not _STRIDED:
            raise Unsupported(f"a tensor of layout {value.layout}")
        dtype = dtype_name(value.dtype)
        if dtype not in BYTES and value.is_quantized:
            raise Unsupported("a quantized tensor")
        if value._has_symbolic_sizes_strides:
            sizes = self.sizes
            return Meta(sizes.shape(value.shape), sizes.shape(value.stride()), dtype)
        return Meta(tuple(value.shape), value.stride(), dtype)

    def is_plain(self, value: Any, meta: Meta) -> bool:
        """Whether loops support the tensor's dtype and device."""
        if meta.dtype not in BYTES:
            return False
        device = value.device
        return device == self.device or (self.device is None and device.type != "meta")
