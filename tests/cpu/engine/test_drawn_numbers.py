"""Compiled: numbers that Python's `random` draws in the function are those of the eager call."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tcw.compiler.engine.backend import backend

pytestmark = pytest.mark.usefixtures("nothing_left_to_aten")

NEWER = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15)

DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform": lambda x: x * random.uniform(0.5, 1.5),
    "whole": lambda x: x + random.randint(3, 9),
    "two": lambda x: (x + random.uniform(0, 1)) / random.uniform(1, 2),
    "of whole numbers": lambda x: (x > 0).long() * random.uniform(0.5, 1.5),
    "alone": lambda x: x.sum() * random.uniform(0.5, 1.5),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", DRAWS)
def test_drawn_numbers_are_those_of_eager(name: str, dynamic: bool | None) -> None:
    function = DRAWS[name]
    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    for rows in (3, 3, 5):
        x = torch.randn(rows, 4, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        random.seed(rows)
        expected = function(x)
        random.seed(rows)
        found = compiled(y)
        # torch 2.15 promotes a number beside a scalar tensor to float64, with any backend
        assert found.dtype == expected.dtype or (NEWER and found.dtype is torch.float64)
        torch.testing.assert_close(found, expected, check_dtype=False)
        if expected.requires_grad:
            expected.sum().backward()
            found.sum().backward()
            torch.testing.assert_close(y.grad, x.grad)


def test_a_drawn_number_beside_float64() -> None:
    def scaled(x: Tensor) -> Tensor:
        return x * random.uniform(0.5, 1.5)

    x = torch.randn(5, dtype=torch.float64)
    random.seed(1)
    expected = scaled(x)
    random.seed(1)
    found = torch.compile(scaled, backend=backend)(x)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
