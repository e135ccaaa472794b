"""Joins of joins: the inner one is written where the outer one needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.loops.graph import Store
from tests.cpu.lowering.harness import Lowered, lowered

X = torch.randn(3, 4)
Y = torch.randn(3, 2)
IMAGE = torch.randn(2, 3, 4, 5)


def _read_twice(x: Any, y: Any) -> Any:
    rows = torch.cat([x, y], 1)
    return torch.cat([rows, rows * 2])


def _from_its_own_result(x: Any) -> Any:
    whole = x.new_zeros(4, 8)
    whole[:3, :4] = x
    whole[:, 4:] = torch.cat([whole[1:, :4], whole[:1, :4]])
    return whole


def _of_replaced(x: Any, y: Any) -> Any:
    rows = torch.cat([x, x], 1)
    x.add_(1)
    return torch.cat([rows, torch.cat([x, x], 1)])


DIRECT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "block_diag": (lambda x, y: torch.block_diag(x, y, x), (X, Y)),
    "cat of cats": (lambda x, y: torch.cat([torch.cat([x, y], 1), torch.cat([y, x], 1)]), (X, Y)),
    "three deep": (
        lambda x, y: torch.cat(
            [torch.cat([torch.cat([x, y], 1), torch.cat([y, x], 1)]), torch.cat([x, y], 1)]
        ),
        (X, Y),
    ),
    "cat of padded": (
        lambda x, y: torch.cat([F.pad(x, (30, 40)), F.pad(y, (40, 32), value=2.0)]),
        (X, Y),
    ),
    "cut at the rows of the outer": (
        lambda x: torch.cat([F.pad(x, (0, 0, 0, 1)).view(2, 8), x.view(2, 6)], 1),
        (X,),
    ),
    "cut into three": (
        lambda x, y: torch.cat(
            [torch.cat([y[0], (x * 2).flatten()]).view(7, 2), y.expand(7, 2)], 1
        ),
        (X, Y[:1]),
    ),
    "_chunk_cat": (
        lambda x, y: torch._chunk_cat([x.repeat(5, 1), y.repeat(4, 3).t()], 0, 4),
        (X, Y),
    ),
    "cat of a cat in channels-last": (
        lambda x: torch.cat([torch.cat([x, x * 2], 1), x], 1),
        (IMAGE.contiguous(memory_format=torch.channels_last),),
    ),
}

COPIED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "read twice": (_read_twice, (X, Y)),
    "returned too": (
        lambda x, y: (rows := torch.cat([x, y], 1), torch.cat([rows, rows[:1]])), (X, Y),
    ),
    "in another order": (
        lambda x, y: torch.cat([torch.cat([x, y], 1).t(), x.t()]), (X, Y),
    ),
    "in another dtype": (lambda x, y: torch.cat([torch.cat([x, y], 1), y.new_zeros(1, 6).double()]),
        (X, Y),
    ),
    "rows split by those of the outer": (
        lambda x, y: torch.cat([torch.cat([x, y], 1).view(2, 9), x.view(2, 6)], 1), (X, Y),
    ),
}  # fmt: skip


def _written(found: Lowered) -> int:
    """How many buffers stores write."""
    return len({node.buffer for node in found.graphs[0].nodes if isinstance(node, Store)})


@pytest.mark.parametrize("name", DIRECT)
def test_written_where_it_is_copied(name: str) -> None:
    fn, arguments = DIRECT[name]
    found = lowered(fn, *arguments)
    assert _written(found) == 1
    assert set(found.kinds()) <= {"Buffer", "Store", "Map"}


@pytest.mark.parametrize("name", COPIED)
def test_copied_where_it_must_be(name: str) -> None:
    fn, arguments = COPIED[name]
    assert _written(lowered(fn, *arguments)) > 1


def test_reads_before_the_writes() -> None:
    lowered(_from_its_own_result, X)
    lowered(_of_replaced, X.clone(), Y)


def test_dynamic_sizes() -> None:
    found = lowered(DIRECT["block_diag"][0], X, Y, dynamic=True)
    assert _written(found) == 1


def test_gradients() -> None:
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    lowered(DIRECT["block_diag"][0], x, y)
