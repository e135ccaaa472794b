"""Which library computes a convolution on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tcw.compiler.control.hooks import Hook, Missing, resolve

_SELECT = "torch._C:_select_conv_backend"

HOOK = Hook(
    name="convolution libraries",
    offers="channels-last memory for those convolutions alone that oneDNN computes",
    needs=(_SELECT,),
    test="engine/test_channels_last.py",
)

_ATENS_OWN = "Slow"
"""How the names of ATen's own implementations on the CPU begin (`ConvBackend`)."""
_LARGE = 1 << 10
"""The size that an unknown one counts as."""
_ONEDNNS = (torch.float16, torch.bfloat16, torch.float32)


def by_onednn(image: torch.Tensor, weight: torch.Tensor, window: Sequence[Any]) -> bool:
    """Whether oneDNN computes this convolution of a CPU (`use_mkldnn` in
    ATen/native/Convolution.cpp): by the dtype and, in float32, by sizes and the number of threads.

    `window`: stride, padding, dilation, whether it is transposed, the padding of its output, and
    groups. Unknown sizes count as large. If they are those of a weight, or if torch does not say
    which library it selects, the dtype alone decides.
    """
    try:
        select: Any = resolve(_SELECT)
    except Missing:
        return image.dtype in _ONEDNNS
    if not all(isinstance(size, int) for size in (image.shape[1], *weight.shape)):
        return image.dtype in _ONEDNNS
    with unset_fake_temporarily():
        empty = torch.empty((), dtype=image.dtype)
        sizes = [size if isinstance(size, int) else _LARGE for size in image.shape]
        chosen = select(empty.expand(sizes), empty.expand(weight.shape), None, *window)
    return not chosen.name.startswith(_ATENS_OWN)
