"""Quantities in words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.viewers import words


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KB"),
        (524288, "512 KB"),
        (1 << 20, "1.0 MB"),
        (2134016, "2.0 MB"),
        (1048575, "1.0 MB"),
        (300 << 20, "300 MB"),
        (1536, "1.5 KB"),
        (None, "size unknown"),
    ],
)
def test_bytes(count: int | None, text: str) -> None:
    assert words.bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.84, "12.8 s"),
        (0.00655, "6.55 ms"),
        (0.0101, "10.1 ms"),
        (0.135, "135 ms"),
        (0.0000313, "31.3 µs"),
        (0.9999, "1.0 s"),
        (59.96, "1 min"),
        (75.2, "1 min 15 s"),
        (0.0, "0 s"),
        (None, "not measured"),
        (math.nan, "not measured"),
    ],
)
def test_seconds(seconds: float | None, text: str) -> None:
    assert words.seconds_text(seconds) == text


def test_numbers_and_plurals() -> None:
    assert words.number(1634) == "1,634"
    assert words.plural(0, "graph") == "no graphs"
    assert words.plural(1, "graph") == "1 graph"
    assert words.plural(2, "miss") == "2 misses"
    assert words.numbers_text([7, 2, 3, 4, 9, 8]) == "2–4, 7–9"
    assert words.numbers_text([1, 2]) == "1, 2"
    assert words.listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_ratios_and_errors() -> None:
    assert words.ratio_text(1.0634) == "1.06x"
    assert words.ratio_text(None) == "not measured"
    assert words.percent(0.24) == "24%"
    assert words.percent(0.01) == "1%"
    assert words.percent(0.012) == "1.2%"
    assert words.error_text(4.77e-07) == "4.8e-07"
    assert words.error_text(0.5) == "0.5"
    assert words.error_text(0.0) == "0"
    assert words.error_text(math.inf) == "inf"
    assert words.error_text(None) == "not measured"


def test_shapes() -> None:
    assert words.shape_text((4, 128, "s77")) == "4×128×s77"
    assert words.shape_text(()) == "scalar"


@given(st.floats(min_value=1e-9, max_value=59))
def test_durations_keep_their_size(seconds: float) -> None:
    """What is shown is within a twentieth of what it was."""
    value, unit = words.seconds_text(seconds).split()
    shown = float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]
    assert shown == pytest.approx(seconds, rel=0.051, abs=6e-9)


def test_a_small_change_of_a_large_size_is_seen() -> None:
    assert words.bytes_change(512 << 10, 2 << 20) == "512 KB → 2.0 MB"
    assert words.bytes_change(572_400, 572_416) == "572,400 → 572,416 B"
