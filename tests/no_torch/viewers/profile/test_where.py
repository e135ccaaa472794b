"""Rows without a line of the user's say what else is known of their place, in every view."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import AnyRecord, CallProfile
from tcw.viewers.chrome_trace import chrome_trace
from tcw.viewers.json_profile import profile_items
from tcw.viewers.panes import waterfall
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile.rows import where
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.profile import profile
from tests.no_torch.profile_building import Call
from tests.no_torch.viewers.profile.conftest import profiled


def placeless(
    modules: tuple[str, ...] = (), kernel: bool = True, part: str = "model"
) -> list[AnyRecord]:
    """One region that lost, without a line."""
    call = Call()
    operation = call.operation("aten.relu.default", 25, 100.0, part=part, module=(*modules, "")[0])
    if kernel:
        step = call.kernel("cpp_fused_relu_0", "relu", (), 300.0)
    else:
        step = call.between("aten.relu", 300.0, part=part)
    call.operations = [structs.replace(one, location=None) for one in call.operations]
    call.region("relu", [step], [operation], modules=modules)
    return call.done()


CASES = {
    "layers.0.attention": placeless(("layers.0.attention",)),
    "module 0": placeless(("0",)),
    "0/0/inference": placeless(),
    "outside graphs": placeless(kernel=False),
    "tcw's loss": placeless(kernel=False, part="loss"),
    "autograd": placeless(kernel=False, part="gradients"),
    "optimizer": placeless(kernel=False, part="optimizer"),
}


@pytest.mark.parametrize("expected", CASES)
def test_every_view_says_where(expected: str) -> None:
    records = CASES[expected]
    recording = Recording(records)
    (row,) = profiled(records).rows
    assert where(row) == expected
    for width, seen in ((120, expected), (100, expected[-12:])):
        lines = to_text(profile(recording, width), width).splitlines()
        assert any(seen in line and "relu" in line and "+200.0" in line for line in lines), lines
    view = View(Derived(recording, Provenance(records)))
    for width, seen in ((120, expected[-12:]), (80, expected[-9:])):
        texts = [row.text for row in waterfall.content(view, width).rows]
        assert any(seen in text and "+200.0" in text for text in texts), texts
    assert profile_items(recording)[0].regions[0].where == expected


def test_a_line_is_all_that_is_said_where_there_is_one() -> None:
    call = Call()
    operation = call.operation("aten.relu.default", 25, 100.0, module="layers.0")
    step = call.kernel("cpp_fused_relu_0", "relu", [25], 300.0)
    call.region("relu", [step], [operation], modules=("layers.0",))
    (row,) = profiled(call.done()).rows
    assert where(row) == ""


def test_the_module_is_said_of_a_cause_without_a_line() -> None:
    (cause,) = profiled(CASES["layers.0.attention"]).causes
    assert cause.place is None
    assert cause.notes[0] == "in layers.0.attention"


def test_slices_without_a_line_are_named_by_their_module() -> None:
    names = [
        one["name"] for one in chrome_trace(Recording(CASES["layers.0.attention"]))["traceEvents"]
    ]
    assert "layers.0.attention relu" in names


def test_the_same_call_outside_of_graphs_says_what_differs() -> None:
    (cause,) = profiled(CASES["tcw's loss"]).causes
    assert cause.title == "relu is slower compiled: the same call, outside all graphs"
    assert "after generated code, ATen's code and data may be out of cache" in cause.notes


def test_views_that_both_sides_make_outside_of_graphs() -> None:
    call = Call()
    views = [call.operation("aten.detach.default", 25, 1.0, launches=0) for _ in range(2)]
    steps = [call.between("aten.detach", 9.0, part="gradients") for _ in range(2)]
    call.region("gradients: detach", steps, views)
    (cause,) = profiled(call.done()).causes
    words = "gradients: detach is slower compiled: the same 2 calls, outside all graphs"
    assert cause.title == words
    assert cause.notes[0] == "aten.detach.default ×2 → aten.detach ×2"


def test_of_a_call_that_is_faster_no_cache_is_said_to_be_cold() -> None:
    call = Call()
    operation = call.operation("aten.mean.default", 25, 90.0, part="loss")
    step = call.between("aten.mean", 9.0, part="loss")
    call.region("loss: mean", [step], [operation])
    (cause,) = profiled(call.done()).causes
    assert cause.title == "loss: mean, the same call, outside all graphs"
    assert not any("cache" in note for note in cause.notes)


def test_a_view_of_a_result_is_none_of_capture() -> None:
    call = Call()
    step = call.between("aten._unsafe_view", 9.0)
    call.region("view", [step], [])
    (cause,) = profiled(call.done()).causes
    assert cause.title == "view outside all graphs, only in the compiled call"


def test_a_devices_clock_sees_no_cold_caches_of_the_host() -> None:
    records = [
        structs.replace(one, clock="device") if isinstance(one, CallProfile) else one
        for one in CASES["tcw's loss"]
    ]
    (cause,) = profiled(records).causes
    assert not any("cache" in note for note in cause.notes)
