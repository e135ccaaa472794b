"""Padded values that only loops read are reads with a border; others stay pieces of a buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.engine.backend import backend
from tests.cpu.codegen.nests import programs

IMAGE = torch.randn(2, 7, 5, 64)

READ: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "squares in windows": (lambda x: F.local_response_norm(x, 2), IMAGE),
    "wider windows": (lambda x: F.local_response_norm(x, 5), IMAGE),
    "other numbers": (
        lambda x: F.avg_pool2d(F.pad(x, (0, 0, 2, 1), value=3.0), (2, 1), stride=1),
        IMAGE,
    ),
    "two dimensions": (
        lambda x: F.avg_pool3d(F.pad(x, (0, 0, 1, 0, 2, 1)), (2, 2, 1), stride=1),
        IMAGE,
    ),
    "a slice": (lambda x: F.avg_pool2d(F.pad(x[:, 1:], (0, 0, 1, 1)), (2, 1), stride=1), IMAGE),
}
WRITTEN: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "short rows": (lambda x: F.local_response_norm(x, 2), torch.randn(2, 6, 5, 3)),
    "a border in the rows": (
        lambda x: F.avg_pool2d(F.pad(x, (1, 1)), (2, 1), stride=1),
        torch.randn(2, 3, 5, 70),
    ),
    "a heavy value": (
        lambda x: F.avg_pool2d(F.pad(x.exp(), (0, 0, 1, 1)), (2, 1), stride=1),
        IMAGE,
    ),
    "zeros that are none outside": (
        lambda x: F.avg_pool2d(F.pad(x + 1, (0, 0, 1, 1)), (2, 1), stride=1),
        IMAGE,
    ),
    "returned": (
        lambda x: (padded := F.pad(x, (0, 0, 1, 1)), F.avg_pool2d(padded, (2, 1), stride=1)),
        IMAGE,
    ),
}


def _memories(name: str, table: dict[str, tuple[Callable[..., Any], torch.Tensor]]) -> list[str]:
    fn, x = table[name]
    found = torch.compile(fn, backend=backend)(x)
    torch.testing.assert_close(found, fn(x))
    (program,) = programs(fn, x)
    return [memory for memory in program.memories if "pad" in memory]


@pytest.mark.parametrize("name", READ)
def test_read_with_a_border(name: str) -> None:
    assert _memories(name, READ) == []


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name: str) -> None:
    assert len(_memories(name, WRITTEN)) == 1
