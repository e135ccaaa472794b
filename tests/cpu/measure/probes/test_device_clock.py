"""A device's clock, on a machine without a device."""

from __future__ import annotations

from time import perf_counter_ns

import pytest
import torch

from tcw.compiler.measure.probes import device_clock
from tcw.compiler.measure.probes.clock import Reading
from tcw.compiler.measure.probes.device_clock import DeviceClock, NotRead, read
from tcw.compiler.measure.probes.profiler_trace import parse
from tests.no_torch.measure.probes.test_profiler_trace import EVENTS


def test_a_reading_is_the_time_of_the_kernels_of_a_range() -> None:
    found = read(parse(EVENTS, clock=1_000_000))
    assert [reading.key for reading in found] == [10, 20, 11, 12]
    assert found[3] == Reading(
        12, 1_060_000, 45_500, 2, ("Memset (Device)", "gemm"), host_ns=20_000
    )


def test_where_no_device_is_looked_at_it_is_the_host_s_clock() -> None:
    before = perf_counter_ns()
    with device_clock.device_clock(device=False) as clock:
        clock.start(3)
        clock.start(4)
        torch.ones(8)
        clock.stop(4)
        clock.stop(3)
        with pytest.raises(NotRead):
            clock.readings()
    after = perf_counter_ns()
    outer, inner = clock.readings()
    assert (outer.key, inner.key) == (3, 4)
    assert before <= outer.start <= inner.start
    assert inner.start + inner.ns <= outer.start + outer.ns <= after
    assert clock.busy_ns() == 0


def test_a_clock_can_be_stopped_that_was_not_started() -> None:
    DeviceClock().stop(5)
