"""Lookups of what an operation was measured to be fastest with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from torch._inductor.codecache import PersistentCache

from tcw.compiler.inductor import autotuning
from tcw.compiler.trace.records import CacheLookup
from tcw.viewers.summary.caches import cache_uses
from tests.cpu.recorded import record


class Choice:
    """As much of torch's `ChoiceCaller` as the cache asks for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def hash_key(self) -> str:
        return self.name


def measured(choices: Sequence[Choice]) -> dict[Choice, float]:
    return {choice: float(at) for at, choice in enumerate(choices, 1)}


def test_measured_once_and_known_then() -> None:
    choices = [Choice("aten"), Choice("cpp")]
    with record((autotuning.HOOK,), caches=True) as recorded:
        cache = PersistentCache()
        assert cache.lookup(choices, "mm", "8x8", None) == {}
        first = cache.lookup(choices, "mm", "8x8", measured)
        again = PersistentCache().lookup(choices, "mm", "8x8", measured)
        cache.lookup([*choices, Choice("new")], "mm", "8x8", measured)
        cache.lookup(choices, "mm", "16x8", measured)
    assert list(first.values()) == [1.0, 2.0]
    assert first == again
    found = recorded.all(CacheLookup)
    assert [one.verdict for one in found] == ["miss", "hit", "miss", "miss"]
    assert [one.missed for one in found] == [
        "mm: 2 choices were measured", "", "mm: 3 choices were measured",
        "mm: 2 choices were measured",
    ]  # fmt: skip
    assert len({one.key for one in found}) == 2
    (use,) = cache_uses(recorded)
    assert (use.cache, use.hits, use.misses) == ("autotuning", 1, 3)


def test_what_the_measurement_raises_comes_out() -> None:
    def fails(choices: Sequence[Choice]) -> dict[Choice, float]:
        raise RuntimeError("no choice runs")

    with (
        record((autotuning.HOOK,), caches=True) as recorded,
        pytest.raises(RuntimeError, match="no choice runs"),
    ):
        PersistentCache().lookup([Choice("cpp")], "mm", "8x8", fails)
    assert not recorded.all(CacheLookup)
