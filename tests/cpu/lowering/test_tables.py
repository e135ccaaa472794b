"""Indices that are known while a graph is lowered: resampling, ranges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from tcw.compiler.loops.expressions import Gather, Load, walk
from tcw.compiler.loops.graph import Map
from tests.cpu.lowering.harness import Lowered, lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, grid
from tests.long import mostly_long


def index_loads(result: Lowered) -> int:
    """The number of indices that are read from memory."""
    found = 0
    for node in result.graphs[0].nodes:
        for part in walk(node.expression) if isinstance(node, Map) else ():
            if isinstance(part, Gather):
                inner = [one for term in part.terms for one in walk(term.index)]
                found += sum(isinstance(one, Load) for one in inner)
    return found


@pytest.mark.parametrize("dtype", mostly_long(FLOATS, (torch.float32, torch.bfloat16)))
@pytest.mark.parametrize("factor", [*mostly_long((2, 4, 0.5), (2, 0.5)), (2, 1), (0.25, 4)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_elements_by_a_whole_factor(mode: str, factor: Any, dtype: Dtype) -> None:
    x = grid(dtype, 2, 3, 8, 12)
    for image in (x, x.to(memory_format=torch.channels_last)):
        result = lowered(lambda x: functional.interpolate(x, scale_factor=factor, mode=mode), image)
        assert index_loads(result) == 0


@pytest.mark.parametrize("size", [(5, 7), (20, 30), (16, 24), (1, 1)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_other_sizes(mode: str, size: tuple[int, int]) -> None:
    lowered(lambda x: functional.interpolate(x, size, mode=mode), grid(torch.float32, 2, 3, 8, 12))


@pytest.mark.parametrize("corners", [True, False])
def test_bilinear(corners: bool) -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=corners)

    result = lowered(twice, grid(torch.float32, 2, 3, 8, 12))
    assert corners or index_loads(result) == 0


@pytest.mark.parametrize(
    "index",
    [
        lambda: torch.arange(7),
        lambda: torch.arange(2, 9, 3),
        lambda: torch.arange(8).flip(0),
        lambda: torch.arange(16) // 2,
        lambda: (torch.arange(20) - 5).clamp(0, 8),
        lambda: (torch.arange(20) * 7) % 9,
        lambda: torch.arange(3) - 3,
        lambda: torch.full((4,), 5),
    ],
)
def test_ranges(index: Any) -> None:
    x = grid(torch.float32, 4, 9)
    lowered(lambda x: x[:, index()] + 1, x)
    lowered(lambda x: torch.embedding(x.T, index() % 9), x)


def test_a_range_beyond_the_dimension_is_still_an_error() -> None:
    with pytest.raises(Exception, match=r"out of (bounds|range)"):
        lowered(lambda x: x[torch.arange(8)], grid(torch.float32, 7))


def test_gradients_and_sizes_that_change() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, scale_factor=2)

    lowered(twice, grid(torch.float32, 2, 3, 8, 12), dynamic=True, calls=None)
    lowered(twice, grid(torch.float32, 2, 3, 8, 12).requires_grad_(), calls=None)
