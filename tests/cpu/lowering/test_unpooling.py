"""Unpooling: a scatter into each plane of an image, which no index leaves."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.engine.backend import backend
from tcw.compiler.loops.graph import Store
from tests.cpu.lowering.harness import lowered

SIZES = {1: (9,), 2: (6, 8), 3: (4, 6, 8)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("rank", SIZES)
def test_planes_are_written_apart(rank: int, dtype: torch.dtype) -> None:
    pool, unpool = (getattr(F, f"max_{way}pool{rank}d") for way in ("", "un"))
    pooled, indices = pool(torch.randn(2, 3, *SIZES[rank]).to(dtype), 2, return_indices=True)
    found = lowered(lambda x, i: unpool(x, i, 2), pooled, indices)
    *_, store = (node for node in found.graphs[0].nodes if isinstance(node, Store))
    (term,) = store.terms
    plane = [2 * (size // 2) for size in SIZES[rank]]
    assert term.size == torch.Size(plane).numel()
    assert term.checked


def test_an_index_into_another_plane_is_refused() -> None:
    x, indices = (
        torch.randn(1, 2, 2, 2),
        torch.tensor([0, 2, 8, 16]).expand(1, 2, 4).view(1, 2, 2, 2),
    )

    def unpooled(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return F.max_unpool2d(x, i, 2)

    with pytest.raises(RuntimeError):
        unpooled(x, indices)
    with pytest.raises(RuntimeError, match="index 16 is out of bounds"):
        torch.compile(unpooled, backend=backend)(x, indices)
