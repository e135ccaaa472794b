"""Trigonometric and hyperbolic functions."""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.lowering.exponential import NAMES
from tests.cpu.lowering.samples import DTYPES, FLOATS, check_each, corners, grid, pairs

pytestmark = pytest.mark.usefixtures("whole")


@pytest.mark.parametrize("name", NAMES)
def test_one_operand(name: str) -> None:
    function = getattr(torch, name)
    check_each(function, ((corners(dtype),) for dtype in FLOATS))
    check_each(function, ((grid(dtype, 3, 4),) for dtype in DTYPES))


def test_arc_of_two() -> None:
    check_each(torch.atan2, (pairs(dtype) for dtype in DTYPES))
