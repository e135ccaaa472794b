"""The structure that the Trace Event Format asks for."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from msgspec import structs

from tcw.compiler.trace.records import CallTimeline, Moment
from tcw.viewers.chrome_trace import chrome_trace
from tcw.viewers.recording import Recording
from tests.no_torch import profiles, traces


def events(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chrome_trace(Recording(profiles.EVERY[name]()))["traceEvents"]
    return found


@pytest.mark.parametrize("name", profiles.EVERY)
def test_structure(name: str) -> None:
    found = events(name)
    json.dumps(found, allow_nan=False)
    named = {one["pid"] for one in found if one["name"] == "process_name"}
    assert {one["pid"] for one in found} == named
    for one in found:
        assert one["ph"] in ("M", "X")
        assert isinstance(one["pid"], int)
        assert isinstance(one["tid"], int)
        if one["ph"] == "X":
            assert one["ts"] >= 0
            assert one["dur"] >= 0


def nests(found: list[dict[str, Any]]) -> bool:
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for one in found:
        if one["ph"] == "X":
            tracks[one["pid"], one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for slices in tracks.values():
        open_: list[float] = []
        for start, end in sorted(slices, key=lambda one: (one[0], -one[1])):
            while open_ and open_[-1] <= start + 1e-9:
                open_.pop()
            if open_ and end > open_[-1] + 1e-9:
                return False
            open_.append(end)
    return True


@pytest.mark.parametrize("name", profiles.EVERY)
def test_slices_of_a_track_nest(name: str) -> None:
    assert nests(events(name))


def test_slices_that_overlap_are_cut() -> None:
    records = [
        structs.replace(
            one,
            moments=tuple(
                Moment(of=moment.of, start=moment.start, seconds=moment.seconds * 1.4)
                for moment in one.moments
            ),
        )
        if isinstance(one, CallTimeline)
        else one
        for one in profiles.block_profile()
    ]
    assert nests(chrome_trace(Recording(records))["traceEvents"])


def test_a_side_of_which_nothing_was_measured() -> None:
    records = [
        structs.replace(one, moments=()) if isinstance(one, CallTimeline) else one
        for one in profiles.block_profile()
    ]
    found = chrome_trace(Recording(records))["traceEvents"]
    assert [one["name"] for one in found if one["ph"] == "X"] == [
        "call 1, eager",
        "call 1, inductor",
    ]


def test_events_are_named_by_the_users_lines() -> None:
    found = {event["name"]: event for event in events("masked_attention")}
    softmax = found["block.py:21 softmax"]
    assert softmax["args"]["name"] == "cpp_fused__softmax_add_5"
    assert softmax["args"]["read_bytes"] == 524288
    assert found["block.py:25–27 layer norm, max"]["cat"] == "kernel"
    assert "block.py:21 _scaled_dot_product_flash_attention_for_cpu" in found


def test_nothing_was_profiled() -> None:
    assert chrome_trace(Recording(traces.clean()))["traceEvents"] == []
