"""Rounding: half to even, signed zeros, decimals in the dtype's own precision."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.lowering.samples import FLOATS, NUMBERS, check_each, corners, grid

pytestmark = pytest.mark.usefixtures("whole")


def test_to_whole_numbers() -> None:
    functions = (torch.floor, torch.ceil, torch.trunc, torch.round)
    check_each(lambda x: [f(x) for f in functions], ((corners(d),) for d in NUMBERS))


@pytest.mark.parametrize("decimals", [-1, 0, 1, 3])
def test_to_decimals(decimals: int) -> None:
    check_each(lambda x: torch.round(x, decimals=decimals), ((grid(d, 50) * 20,) for d in FLOATS))


def test_fractions_and_signs_of_zeros() -> None:
    check_each(
        lambda x: (torch.frac(x), 1 / torch.trunc(x), 1 / torch.round(x)),
        ((corners(d),) for d in FLOATS),
    )
