"""A weight with a separate length: forward and gradients."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import grid


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "dim"), [((4, 3, 5), 0), ((4, 3, 5), 2), ((6, 7), 1), ((6, 7), 0)]
)
def test_gradients(shape: tuple[int, ...], dim: int, dtype: torch.dtype) -> None:
    v = (grid(dtype, *shape) + 0.3).requires_grad_()
    lengths = [size if d == dim else 1 for d, size in enumerate(shape)]
    g = (grid(dtype, *lengths) + 0.7).requires_grad_()
    lowered(lambda v, g: torch._weight_norm(v, g, dim).sin(), v, g)
