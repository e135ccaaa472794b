"""Maxima over as many windows as asked for, and where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, grid
from tests.long import mostly_long

INDEXED = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
SIZES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "tiles": ((2, 3, 4, 6), (2, 3)),
    "several sizes": ((2, 3, 5, 7), (2, 3)),
    "one dimension of several sizes": ((2, 3, 4, 7), (4, 3)),
    "more windows than elements": ((2, 3, 3, 4), (5, 6)),
    "the whole plane": ((2, 3, 17, 20), (1, 1)),
    "large tiles": ((2, 3, 32, 40), (2, 2)),
    "columns": ((2, 3, 40, 3), (1, 3)),
    "no batch": ((3, 5, 7), (2, 3)),
    "a line": ((2, 3, 11), (4,)),
    "a volume": ((2, 3, 4, 5, 6), (2, 2, 3)),
    "a whole volume": ((2, 2, 2, 16, 17), (1, 1, 1)),
}


def _pool(size: tuple[int, ...], *, indices: bool) -> Callable[[Any], Any]:
    pool = INDEXED[len(size)]
    return lambda x: pool(x, size, return_indices=indices)


def _with_extremes(dtype: Dtype, *shape: int) -> torch.Tensor:
    x = grid(dtype, *shape)
    flat = x.view(-1)
    flat[3], flat[5], flat[6], flat[-1] = float("nan"), float("inf"), float("nan"), 7
    flat[len(flat) // 2 :][:9] = float("-inf")
    return x


@pytest.mark.parametrize(
    ("name", "dtype"),
    mostly_long(
        [(name, dtype) for name in SIZES for dtype in FLOATS],
        [*((name, torch.float32) for name in SIZES), ("several sizes", torch.bfloat16)],
    ),
)
def test_maxima_and_indices(name: str, dtype: Dtype) -> None:
    shape, size = SIZES[name]
    x = _with_extremes(dtype, *shape)
    for argument in (x, x.mT.contiguous().mT) if len(size) > 1 else (x,):
        lowered(_pool(size, indices=False), argument)
        lowered(_pool(size, indices=True), argument)


def test_gradients() -> None:
    for name in ("tiles", "several sizes", "the whole plane"):
        shape, size = SIZES[name]
        lowered(
            _pool(size, indices=False),
            torch.randn(shape, requires_grad=True),
            calls=["adaptive_max_pool2d_backward"],
        )


def test_what_stays_a_call() -> None:
    """Vectors along the channels; windows of several sizes that are large; indices in short rows
    of large tiles, of which the maxima alone are a reduction."""
    images = torch.randn(2, 16, 6, 6).to(memory_format=torch.channels_last)
    call = ["aten.adaptive_max_pool2d.default"]
    for x, size, indices, calls in (
        (images, (3, 3), True, call),
        (images[:, :4].to(memory_format=torch.channels_last), (3, 3), True, []),
        (torch.randn(2, 3, 40, 40), (3, 3), False, call),
        (torch.randn(2, 3, 12, 12), (2, 2), True, call),
        (torch.randn(2, 3, 12, 12), (2, 2), False, []),
    ):
        assert lowered(_pool(size, indices=indices), x, calls=None).calls() == calls
