from __future__ import annotations

import msgspec
import pytest

from tcw.compiler.trace.records import (
    AnyRecord,
    CallEnd,
    EagerFallback,
    FailedGuard,
    FrameEnd,
    FrameStart,
    Graph,
    Recompile,
)
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import findings, recompiles
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.targets import ToCause
from tests.no_torch import traces
from tests.no_torch.viewers.panes.conftest import view_of


def test_values_are_never_cut_only_names(block_records: list[AnyRecord]) -> None:
    guard = FailedGuard(
        entry="0/0", guard="tensor size mismatch", source="L['kwargs']['a_very_long_input_name']",
        expected="2", seen="3", kind="TENSOR_MATCH",
    )  # fmt: skip
    record = Recompile(compile_id="0/1", call=2, failed=(guard,), function="forward", reason="")
    kept = [r for r in block_records if not isinstance(r, Recompile)]
    rows = recompiles.causes(view_of([*kept, record]), 58).rows
    assert any(row.text.rstrip().endswith("seen 3") for row in rows)
    assert all(len(row.text) <= 58 for row in rows)


def test_what_served_a_call_is_unknown_where_it_was_not_recorded(
    block_records: list[AnyRecord],
) -> None:
    def lines(records: list[AnyRecord]) -> list[str]:
        return [row.text for row in recompiles.cache(view_of(records), 110).rows]

    call = next(line for line in lines(block_records) if "call 3" in line)
    assert "✓ hit" in call
    assert "?" not in call
    without = [
        msgspec.structs.replace(r, hits=()) if isinstance(r, CallEnd) else r for r in block_records
    ]
    assert "?" in next(line for line in lines(without) if "call 3" in line)


def test_the_entry_of_the_chosen_cause_is_on_screen() -> None:
    """Where there is no room for all entries, those of the first recompile are shown, not the
    last."""
    rows = recompiles.cache(view_of(traces.recompile_limit()), 60).rows
    assert any("0/1" in row.text for row in rows)


@pytest.mark.parametrize(("compile_id", "leads"), [("0/8", "recompiles"), ("", "source")])
def test_enter_on_a_recompile_limit_shows_its_cause(compile_id: str, leads: str) -> None:
    """Without a known cause it shows the function."""
    records = [
        msgspec.structs.replace(one, compile_id=compile_id)
        if isinstance(one, EagerFallback)
        else one
        for one in traces.recompile_limit()
    ]
    navigator = Navigator(view_of(records))
    row = next(row for row in findings.content(navigator.view, 110).rows if row.opens)
    assert "the recompile limit was reached" in row.text
    assert navigator.opened(row, "findings")
    assert navigator.arrangement == leads


def test_no_value_is_marked_as_cut_that_is_whole() -> None:
    rows = recompiles.cache(view_of(traces.recompile_limit()), 60).rows
    assert not any("›" in row.text for row in rows)


def test_the_breaks_are_shown_at_their_line(block_records: list[AnyRecord]) -> None:
    """Also where the command led there, not a row."""
    navigator = Navigator(view_of(block_records))
    navigator.go("break")
    (site, *_) = navigator.view.summary.breaks
    assert navigator.view.ref == site.place.ref
    assert navigator.view.compile_id == site.compile_ids[0]


def test_what_is_shown_beside_a_cause_is_of_its_compile(block_records: list[AnyRecord]) -> None:
    navigator = Navigator(view_of(block_records))
    navigator.go("recompiles")
    for cause, row in zip(navigator.view.summary.recompiles, _causes(navigator), strict=True):
        navigator.moved(row)
        assert navigator.view.compile_id == cause.frames[0].compile_id


def _causes(navigator: Navigator) -> list[Row]:
    rows = recompiles.causes(navigator.view, 80).rows
    return [row for row in rows if isinstance(row.at, ToCause)]


def test_a_recording_opens_at_its_first_graph(block_records: list[AnyRecord]) -> None:
    """A function that torch left to Python has nothing to show in any pane."""
    skipped = [*traces.frame(compile_id="0/0")]
    frames = [one for one in skipped if isinstance(one, FrameStart)]
    later = [_later(record) for record in block_records]
    navigator = Navigator(view_of([*later[:1], *frames, *later[1:]], compile_id=""))
    navigator.grown()
    assert navigator.view.compile_id == "7/0"


def _later(record: AnyRecord) -> AnyRecord:
    if isinstance(record, FrameStart | Graph | FrameEnd) and record.compile_id == "0/0":
        return msgspec.structs.replace(record, compile_id="7/0")
    return record


def test_long_values_are_cut_at_their_end(block_records: list[AnyRecord]) -> None:
    value = "f32[1, 4, 8, 8] stride (4, 1, 32, 4) cpu requires_grad"
    guard = FailedGuard(
        entry="0/0", guard="position_bias is None", source="position_bias",
        expected="None", seen=value, kind="CONSTANT_MATCH",
    )  # fmt: skip
    record = Recompile(compile_id="0/1", call=2, failed=(guard,), function="forward", reason="")
    kept = [r for r in block_records if not isinstance(r, Recompile)]
    head = recompiles.causes(view_of([*kept, record]), 78).rows[0]
    assert "call 2   position_bias None → f32[1, 4" in head.text
