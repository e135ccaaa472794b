"""A device's events, as torch's profiler exports them, and their owners."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.measure.probes.profiler_trace import ProfilerTrace, calls, parse, union


def event(category: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Any:
    about = {key.replace("_", " "): value for key, value in args.items()}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 7,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": about,
    }


EVENTS = [
    {"ph": "M", "name": "process_name", "ts": 0, "pid": 7, "args": {"name": "python"}},
    event("cpu_op", "tcw#clock", 100.0, 1.0),
    # a graph with a Triton kernel, launched by the driver, and a product, in which ATen launches
    event("cpu_op", "tcw#10", 110.0, 50.0, External_id=1),
    event("cpu_op", "tcw#11", 112.0, 10.0, External_id=2),
    event("cuda_driver", "cuLaunchKernelEx", 115.0, 3.0, correlation=501, External_id=2),
    event("cpu_op", "tcw#12", 130.0, 20.0, External_id=3),
    event("cpu_op", "aten::mm", 131.0, 18.0, External_id=4),
    event("cuda_runtime", "cudaMemsetAsync", 135.0, 2.0, correlation=502, External_id=4),
    event("cuda_runtime", "cudaLaunchKernel", 140.0, 2.0, correlation=503, External_id=4),
    event("kernel", "triton_poi", 125.0, 30.0, tid=20, correlation=501, External_id=2),
    event("gpu_memset", "Memset (Device)", 160.0, 5.0, tid=20, correlation=502, External_id=4),
    event("kernel", "gemm", 165.0, 40.5, tid=20, correlation=503, External_id=4),
    # the backward runs on autograd's thread, at times of ranges of the first
    event("cpu_op", "tcw#20", 111.0, 60.0, tid=2, External_id=5),
    event("cuda_runtime", "cudaGraphLaunch", 145.0, 9.0, tid=2, correlation=504),
    event("kernel", "one", 210.0, 10.0, tid=20, correlation=504),
    event("kernel", "two", 215.0, 10.0, tid=21, correlation=504),
    # outside all ranges; and one whose launch was lost
    event("cpu_op", "aten::add", 180.0, 9.0, External_id=6),
    event("cuda_runtime", "cudaLaunchKernel", 182.0, 2.0, correlation=505, External_id=6),
    event("kernel", "add", 300.0, 7.0, tid=20, correlation=505, External_id=6),
    event("kernel", "lost", 310.0, 1.0, tid=20, correlation=999, External_id=2),
    # named for the device by the profiler, but not its work
    event("gpu_user_annotation", "tcw#10", 125.0, 80.0, tid=20, External_id=1),
]


@pytest.fixture
def trace() -> ProfilerTrace:
    return parse(EVENTS, clock=1_000_000)


def work_of(trace: ProfilerTrace, name: str) -> list[str]:
    found = next(one for one in trace.events() if one.name == name)
    return [work.name for work in trace.work_of(found)]


def test_a_range_holds_what_was_launched_in_it_by_its_thread(trace: ProfilerTrace) -> None:
    assert work_of(trace, "tcw#11") == ["triton_poi", "lost"]
    assert work_of(trace, "tcw#12") == ["Memset (Device)", "gemm"]
    assert work_of(trace, "tcw#10") == ["triton_poi", "Memset (Device)", "gemm", "lost"]
    assert work_of(trace, "tcw#20") == ["one", "two"]
    assert work_of(trace, "aten::add") == ["add"]


def test_times_are_those_of_the_clock_of_python(trace: ProfilerTrace) -> None:
    graph = next(one for one in trace.events() if one.key == 10)
    assert (graph.start, graph.end) == (1_010_000, 1_060_000)
    gemm = next(work for work in trace.work if work.name == "gemm")
    assert (gemm.start, gemm.ns, gemm.launched) == (1_065_000, 40_500, 1_040_000)


def test_the_device_is_busy_where_any_of_its_streams_is(trace: ProfilerTrace) -> None:
    assert trace.busy_ns() == 30_000 + 45_500 + 15_000 + 7_000 + 1_000
    launched_before = trace.busy_ns(until=1_030_000)
    assert launched_before == 30_000 + 1_000


def test_without_a_mark_times_stay_as_they_are() -> None:
    assert next(parse(EVENTS).events()).start == 110_000


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20))))
def test_a_union_counts_each_moment_once(spans: list[tuple[int, int]]) -> None:
    moments = {moment for start, length in spans for moment in range(start, start + length)}
    assert union((start, start + length) for start, length in spans) == len(moments)


def test_what_was_before_the_beginning_is_left_out() -> None:
    (call,) = calls(parse([*EVENTS, event("cpu_op", "tcw#begin", 175.0, 1.0)]))
    assert [one.name for one in call.top] == ["aten::add"]
    assert [one.name for one in call.work] == ["add"]


def test_each_call_has_what_was_asked_for_in_it() -> None:
    """Two calls, and the preparation of the second: work counts where it was launched."""
    marks = [
        event("cpu_op", name, ts, 0.5)
        for name, ts in (
            ("tcw#begin", 10.0),
            ("tcw#end", 30.0),
            ("tcw#begin", 50.0),
            ("tcw#end", 70.0),
        )
    ]
    operations = [
        event("cpu_op", name, ts, 5.0)
        for name, ts in (("warm", 1.0), ("one", 12.0), ("between", 35.0), ("two", 55.0))
    ]
    backward = event("cpu_op", "other thread", 60.0, 2.0, tid=2)
    launch = event("cuda_runtime", "cudaLaunchKernel", 13.0, 1.0, correlation=5)
    kernel = event("kernel", "late", 40.0, 25.0, tid=7, correlation=5)
    first, second = calls(parse([*marks, *operations, backward, launch, kernel]))
    assert [one.name for one in first.top] == ["one"]
    assert [one.name for one in second.top] == ["two", "other thread"]
    assert ([one.name for one in first.work], second.work) == (["late"], [])
