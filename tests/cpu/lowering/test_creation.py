"""Constants, ranges, triangles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.lowering.calls import only_returned
from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import DTYPES, check_each, forms, grid

pytestmark = pytest.mark.usefixtures("whole")

MADE: dict[str, Callable[[], torch.Tensor]] = {
    "full": lambda: torch.full((2, 3), 1.5),
    "full of integers": lambda: torch.full((2,), 7),
    "full of inf": lambda: torch.full((2,), float("-inf"), dtype=torch.bfloat16),
    "zeros": lambda: torch.zeros(3, dtype=torch.int32),
    "ones": lambda: torch.ones(2, 0),
    "scalar_tensor": lambda: torch.scalar_tensor(0.1, dtype=torch.float16),
    "arange": lambda: torch.arange(7),
    "arange from": lambda: torch.arange(3, 9, 2),
    "arange down": lambda: torch.arange(5, -5, -3),
    "arange of floats": lambda: torch.arange(0.1, 2, 0.3),
    "arange in float16": lambda: torch.arange(0, 40, 0.3, dtype=torch.float16),
    "eye": lambda: torch.eye(3, 5),
    "eye of bool": lambda: torch.eye(4, dtype=torch.bool),
}


@pytest.mark.parametrize("name", MADE)
def test_made_of_nothing(name: str) -> None:
    lowered(lambda x: (x + 1, MADE[name]()), torch.ones(1))


@pytest.mark.parametrize(
    ("fn", "returned"),
    [
        (torch.empty_like, True),
        (lambda x: torch.empty_like(x).view(-1), True),
        (lambda x: torch.empty_like(x).view(-1) + 1, False),
        (lambda x: torch.empty_like(x).copy_(x), False),
    ],
)
def test_memory_that_only_the_caller_gets(fn: Callable[..., torch.Tensor], returned: bool) -> None:
    graph = make_fx(fn)(torch.ones(2, 3)).graph
    (made,) = (node for node in graph.nodes if "empty" in str(node.target))
    assert only_returned(made) == returned


def test_memory_that_is_written_over_starts_as_a_constant() -> None:
    """A copy of what it holds would be read and written once more."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(4, 6)
        out[:, :3], out[:, 3:] = x, x + 1
        return out

    assert lowered(halves, torch.randn(4, 3)).kinds()[0] == "Map"


def test_like_another() -> None:
    check_each(
        lambda x: (
            torch.zeros_like(x),
            torch.ones_like(x),
            torch.full_like(x, 1),
            x.new_zeros(2),
            x.new_ones(2),
            x.new_full((2, 2), 1),
        ),
        ((form,) for dtype in DTYPES for form in forms(grid(dtype, 2, 3))),
    )


@pytest.mark.parametrize("diagonal", [0, 1, -2, 9])
def test_triangles(diagonal: int) -> None:
    check_each(
        lambda x: (x.tril(diagonal), x.triu(diagonal)),
        ((form,) for dtype in DTYPES for form in forms(grid(dtype, 2, 4, 5))),
    )


def test_sizes_that_are_symbols() -> None:
    lowered(
        lambda x: (torch.arange(x.shape[0]) * x.shape[1], torch.full((2,), x.shape[0]), x.tril()),
        torch.ones(5, 6),
        dynamic=True,
    )
