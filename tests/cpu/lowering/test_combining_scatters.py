"""Scatters that combine the source with what is there: products, largest and smallest elements."""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.loops.graph import Store
from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, INTEGERS, Dtype, corners, grid

MODES = {"prod": "mul", "amax": "maximum", "amin": "minimum"}


def _source(dtype: Dtype, rows: int) -> torch.Tensor:
    """With a NaN, infinities and extremes in the first rows."""
    source = grid(dtype, rows, 5)
    found = corners(dtype)[: source.numel() // 2]
    source.view(-1)[: len(found)] = found
    return source


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("reduce", MODES)
def test_at_indices_of_each_element(reduce: str, dtype: Dtype, include_self: bool) -> None:
    x, source = grid(dtype, 4, 5), _source(dtype, 9)
    index = torch.randint(0, 3, (9, 5))

    def scattered(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return x.scatter_reduce(0, i, s, reduce, include_self=include_self)

    found = lowered(scattered, x, index, source)
    modes = [node.mode for node in found.graphs[0].nodes if isinstance(node, Store)]
    assert modes[-1] == MODES[reduce]


@pytest.mark.parametrize("include_self", [True, False])
def test_booleans_are_added(include_self: bool) -> None:
    """A sum of booleans is whether one of them is true."""
    x, source = torch.rand(4, 5) < 0.5, torch.rand(9, 5) < 0.3
    index = torch.randint(0, 4, (9, 5))
    for scattered in (
        lambda x, i, s: x.scatter_reduce(0, i, s, "sum", include_self=include_self),
        lambda x, i, s: x.scatter_add(0, i, s),
        lambda x, i, s: x.index_put((i[:, 0],), s, accumulate=True),
    ):
        found = lowered(scattered, x, index, source)
        stores = [node.mode for node in found.graphs[0].nodes if isinstance(node, Store)]
        assert stores[-1] == "add"


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_means_are_a_sum_over_a_count(dtype: Dtype, include_self: bool) -> None:
    x, source = grid(dtype, 4, 5), grid(dtype, 9, 5)
    index = torch.randint(0, 3, (9, 5))
    lowered(
        lambda x, i, s: x.scatter_reduce(0, i, s, "mean", include_self=include_self),
        x,
        index,
        source,
    )
    if dtype is torch.float32:
        lowered(
            lambda x, i, s: x.scatter_reduce(0, i, s, "mean", include_self=include_self),
            x.requires_grad_(),
            index,
            source.requires_grad_(),
        )


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("reduce", MODES)
def test_at_indices_of_rows(reduce: str, dtype: Dtype, include_self: bool) -> None:
    index = torch.tensor([2, 0, 2, 2])

    def reduced(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return x.index_reduce(0, i, s, reduce, include_self=include_self)

    lowered(reduced, grid(dtype, 3, 5), index, _source(dtype, 4))
    lowered(reduced, grid(dtype, 5, 3).t(), index, _source(dtype, 4))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("reduce", ["sum", "prod"])
def test_16_bits_are_rounded_once(reduce: str, dtype: Dtype) -> None:
    """256 ones and 256 more are 512, and not 256 in bfloat16."""
    ones = torch.ones(512, 3, dtype=dtype)
    source = ones if reduce == "sum" else ones + 1 / 128
    index = torch.zeros(512, 3, dtype=torch.int64)
    lowered(
        lambda x, i, s: x.scatter_reduce(0, i, s, reduce), ones[:2], index, source, atol=0, rtol=0
    )


def test_the_source_is_what_would_be_overwritten() -> None:
    index = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 0, 1, 1], [2, 2, 2, 0, 0]])

    def scattered(x: torch.Tensor, i: torch.Tensor, reduce: str) -> torch.Tensor:
        first = x.scatter(0, i[:1], 2.5)
        return first.scatter_reduce(0, i, first, reduce, include_self=False)

    def reduced(x: torch.Tensor, i: torch.Tensor, reduce: str) -> torch.Tensor:
        first = x.scatter(0, i[:1], 2.5)
        return first.index_reduce(0, i[:, 0], first, reduce, include_self=False)

    for reduce in (*MODES, "mean"):
        lowered(lambda x, i, reduce=reduce: scattered(x, i, reduce), torch.randn(3, 5), index)
        lowered(lambda x, i, reduce=reduce: reduced(x, i, reduce), torch.randn(3, 5), index)


def test_an_argument_is_overwritten() -> None:
    index = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 0, 1, 1], [2, 2, 2, 0, 0]])
    found = lowered(
        lambda x, i, s: x.scatter_reduce_(0, i, s, "amax"),
        torch.randn(3, 5),
        index,
        torch.randn(3, 5),
    )
    assert "Buffer" not in found.kinds()


def test_gradients() -> None:
    x, source = torch.randn(3, 5, requires_grad=True), torch.randn(9, 5, requires_grad=True)
    index = torch.randint(0, 3, (9, 5))
    for reduce in MODES:
        lowered(lambda x, i, s, reduce=reduce: x.scatter_reduce(0, i, s, reduce), x, index, source)
