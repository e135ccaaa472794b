"""Graphs of many operations: no recursion to the depth of the graph, and no exponential time."""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.engine.backend import backend


def check(model: object, x: torch.Tensor) -> None:
    torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))  # type: ignore


def test_a_chain_whose_values_are_used_twice() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = torch.sin(x) * x
        return x

    check(model, torch.randn(9))


@pytest.mark.long
def test_a_long_chain() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        for place in range(600):
            x = torch.sin(x) if place % 3 else x * 1.01 + 0.1
        return x

    check(model, torch.randn(9))


def test_a_chain_of_reductions() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        for _ in range(60):
            x = torch.sin(x) - x.mean()
        return x

    check(model, torch.randn(9))


def test_a_chain_of_views() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.pad(x, (1, 0))
        for place in range(600):
            x = x.view(8, 8).view(64) if place % 2 else x.view(4, 16).view(64)
        return x * 2

    check(model, torch.randn(63))
