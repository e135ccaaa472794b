"""The most memory of one call."""

from __future__ import annotations

import torch

from compiler.engine.backend import backend
from compiler.measure.memory.peak import peak_bytes

SIZE = 32 << 20


def test_a_call_that_holds_two_tensors_at_once_takes_both() -> None:
    ones = torch.ones(SIZE // 4)

    def call() -> object:
        first = ones + 1
        second = first * 2
        return second.sum()

    found = peak_bytes(call)
    assert found is not None
    assert 1.9 * SIZE <= found < 2.5 * SIZE


def test_what_was_there_before_is_not_the_call_s() -> None:
    kept = torch.ones(SIZE)
    found = peak_bytes(lambda: kept[:8] + 1)
    assert found is not None
    assert found < SIZE


def test_what_is_freed_inside_counts_once() -> None:
    ones = torch.ones(SIZE // 4)

    def call() -> object:
        for _ in range(4):
            ones.add(1)
        return None

    peak_bytes(call)
    found = peak_bytes(call)
    assert found is not None
    assert 0.9 * SIZE <= found < 1.5 * SIZE


def test_pooled_outputs_of_our_engine_count() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.relu(x) + 1, backend=backend)
    ones = torch.ones(SIZE // 4)
    for _ in range(3):
        compiled(ones)
    found = peak_bytes(lambda: compiled(ones))
    assert found is not None
    assert 0.9 * SIZE <= found < 1.5 * SIZE
