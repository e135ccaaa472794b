"""The roofline, from ceilings as a record has them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import Bandwidth, Ceilings
from tcw.compiler.trace.roofline import bandwidth_at, least_seconds

MACHINE = Ceilings(
    device="a machine",
    kind="cpu",
    threads=2,
    bandwidth=(
        Bandwidth(bytes=1 << 10, per_second=100e9),
        Bandwidth(bytes=1 << 20, per_second=50e9),
        Bandwidth(bytes=1 << 30, per_second=10e9),
    ),
    rates={"float32": 100e9},
    measured=0.0,
)


def with_curve(curve: tuple[Bandwidth, ...]) -> Ceilings:
    return msgspec.structs.replace(MACHINE, bandwidth=curve)


def test_bandwidth_lies_between_its_neighbours() -> None:
    assert bandwidth_at(MACHINE, 1) == 100e9
    assert bandwidth_at(MACHINE, 1 << 20) == 50e9
    assert bandwidth_at(MACHINE, 1 << 15) == pytest.approx(75e9)
    assert bandwidth_at(MACHINE, 1 << 40) == 10e9
    assert bandwidth_at(msgspec.structs.replace(MACHINE, bandwidth=()), 1) is None


def test_the_nearer_ceiling_holds() -> None:
    assert least_seconds(MACHINE, 1 << 20, None, "") == ((1 << 20) / 50e9, "bandwidth")
    assert least_seconds(MACHINE, 1 << 20, 10**6, "float32") == ((1 << 20) / 50e9, "bandwidth")
    assert least_seconds(MACHINE, 1 << 20, 10**9, "float32") == (0.01, "rate")
    assert least_seconds(MACHINE, None, 10**9, "float32") is None
    assert least_seconds(MACHINE, 1 << 20, 10**9, "float8_e4m3fn") is None
    assert least_seconds(MACHINE, 1 << 20, 0, "int64") == ((1 << 20) / 50e9, "bandwidth")


curves = st.lists(
    st.tuples(st.integers(1, 1 << 40), st.floats(1e6, 1e13)),
    min_size=1,
    max_size=8,
    unique_by=lambda point: point[0],
).map(lambda points: tuple(Bandwidth(bytes=b, per_second=s) for b, s in sorted(points)))


@given(curves, st.integers(1, 1 << 42))
def test_never_beyond_the_neighbours(curve: tuple[Bandwidth, ...], size: int) -> None:
    found = bandwidth_at(with_curve(curve), size)
    below = [one for one in curve if one.bytes <= size][-1:]
    above = [one for one in curve if one.bytes >= size][:1]
    around = [one.per_second for one in (*below, *above)]
    assert found is not None
    assert min(around) <= found <= max(around)


@given(curves, st.integers(1, 1 << 42), st.integers(1, 1 << 42))
def test_monotone_between_two_neighbours(
    curve: tuple[Bandwidth, ...], one: int, other: int
) -> None:
    speeds = sorted((point.per_second for point in curve), reverse=True)
    falling = with_curve(
        tuple(
            Bandwidth(bytes=point.bytes, per_second=speed)
            for point, speed in zip(curve, speeds, strict=True)
        )
    )
    small, large = sorted((one, other))
    first, second = bandwidth_at(falling, small), bandwidth_at(falling, large)
    assert first is not None
    assert second is not None
    assert first >= second * (1 - 1e-9)


@given(curves, st.integers(1, 1 << 42), st.integers(0, 1 << 50))
def test_more_work_takes_no_less_time(curve: tuple[Bandwidth, ...], size: int, flops: int) -> None:
    machine = with_curve(curve)
    less = least_seconds(machine, size, flops, "float32")
    more = least_seconds(machine, size, 2 * flops + 1, "float32")
    assert less is not None
    assert more is not None
    assert 0 < less[0] <= more[0]
