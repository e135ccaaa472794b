"""The peak memory of one call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tcw.compiler.engine.backend import backend
from tcw.compiler.measure.memory import peak
from tcw.compiler.measure.memory.peak import least_peak_bytes

SIZE = 32 << 20


def lesser(call: Callable[[], object]) -> int | None:
    """Of two tries, as a profile takes it: what the kernel paged out before a call counts if that
    reads it again."""
    return least_peak_bytes(lambda: call, "cpu")


def test_a_call_that_holds_two_tensors_at_once_takes_both() -> None:
    ones = torch.ones(SIZE // 4)

    def call() -> object:
        first = ones + 1
        second = first * 2
        return second.sum()

    found = lesser(call)
    assert found is not None
    assert 1.9 * SIZE <= found < 2.5 * SIZE


def test_what_was_there_before_is_not_the_call_s() -> None:
    kept = torch.ones(SIZE)
    found = lesser(lambda: kept[:8] + 1)
    assert found is not None
    assert found < SIZE


def test_what_is_freed_inside_counts_once() -> None:
    ones = torch.ones(SIZE // 4)

    def call() -> object:
        for _ in range(4):
            ones.add(1)
        return None

    call()
    found = lesser(call)
    assert found is not None
    assert 0.9 * SIZE <= found < 1.5 * SIZE


def test_pooled_outputs_of_our_engine_count() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.relu(x) + 1, backend=backend)
    ones = torch.ones(SIZE // 4)
    for _ in range(3):
        compiled(ones)
    found = lesser(lambda: compiled(ones))
    assert found is not None
    assert 0.9 * SIZE <= found < 1.5 * SIZE


@pytest.mark.parametrize(("tries", "least"), [([7, 5], 5), ([None, 5], 5), ([None, None], None)])
def test_the_lesser_of_two_tries_counts_each_prepared_anew(
    monkeypatch: pytest.MonkeyPatch, tries: list[int | None], least: int | None
) -> None:
    prepared: list[object] = []

    def prepare() -> object:
        prepared.append(object())
        return prepared[-1]

    def told(call: object, device: str, *, graphs: bool) -> int | None:
        assert (call, device, graphs) == (prepared[-1], "cuda", True)
        return tries[len(prepared) - 1]

    monkeypatch.setattr(peak, "peak_bytes", told)
    found = least_peak_bytes(prepare, "cuda", graphs=True)  # type: ignore[arg-type]
    assert found == least
    assert len(prepared) == 2
