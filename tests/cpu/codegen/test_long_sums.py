"""Long sums of floats are added in short chains: they round as little as eager's."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.codegen.test_nests_text import text

LAST = torch.channels_last


def rectified(*sizes: int) -> torch.Tensor:
    """Many equal elements, whose squared distances from the mean round alike."""
    torch.manual_seed(0)
    return (torch.randn(sizes) * 0.6 + 0.3).clamp_min(0)


def variance(x: torch.Tensor) -> torch.Tensor:
    return x.var((0, 2, 3), correction=0)


CASES = {
    "columns": (lambda x: x.sum(0), torch.full((8000, 12), 0.1)),
    "turned": (lambda x: x.sum(1), torch.full((20000, 12), 0.1).t()),
    "rows": (lambda x: x.sum(1), torch.full((4, 1_000_003), 0.1)),
    "heavy rows": (lambda x: x.exp().sin().erf().sum(1), torch.full((4, 200_003), 0.1)),
    "apart": (lambda x: x[..., 0].sum(1), torch.full((4, 50_000, 33), 0.1)),
    "two axes": (lambda x: x[:, :, :700].sum((1, 2)), torch.full((3, 900, 701), 0.1)),
    "middle": (lambda x: x.sum(1), torch.full((6, 5000, 40), 0.1)),
    "many channels": (variance, rectified(4, 256, 28, 28).contiguous(memory_format=LAST)),
    "statistics": (variance, rectified(2, 12, 32, 32).contiguous(memory_format=LAST)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_long_sum_rounds_little(name: str) -> None:
    function, x = CASES[name]
    exact = function(x.double())
    ours = torch.compile(function, backend="tcw")(x)
    assert ((ours.double() - exact) / exact).abs().max() < 4e-6


def test_a_long_row_of_unknown_length_rounds_little() -> None:
    x = torch.full((4, 1_000_003), 0.1)
    exact = x.double().sum(1)
    ours = torch.compile(lambda x: x.sum(1), backend="tcw", dynamic=True)(x)
    assert ((ours.double() - exact) / exact).abs().max() < 4e-6


def test_a_small_sum_of_many_rows_has_several_chains() -> None:
    x = torch.randn(2000, 12)
    assert "block < 8;" in text(lambda x: x.sum(0), x, comment="y = x.sum(0)")
    assert "block < 1;" in text(lambda x: x.sum(0), x[:200], comment="y = x.sum(0)")
    assert "block < 1;" in text(lambda x: x.sum(0), x.int(), comment="y = x.sum(0)")
