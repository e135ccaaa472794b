from __future__ import annotations

from dataclasses import replace

import pytest

from tcw.compiler.trace.records import AnyRecord, End
from tcw.viewers.panes.arrangement import ARRANGEMENTS, PANES, STAGES
from tcw.viewers.panes.rows import Rows
from tcw.viewers.panes.view import View
from tests.no_torch.viewers.panes.conftest import view_of


def test_every_slot_names_a_pane_and_every_stage_an_arrangement() -> None:
    for arrangement in ARRANGEMENTS.values():
        columns = (*arrangement.columns, *arrangement.wide)
        slots = [slot for column in columns for slot in column.slots]
        slots += [*arrangement.narrow, *([arrangement.top] if arrangement.top else [])]
        assert {slot.pane for slot in slots} <= set(PANES)
        narrow = {slot.pane.removesuffix("-narrow") for slot in arrangement.narrow}
        assert arrangement.focus in narrow
    assert set(STAGES.values()) <= set(ARRANGEMENTS)


@pytest.mark.parametrize("width", [9, 30, 60, 120, 200])
@pytest.mark.parametrize("pane", PANES)
def test_a_pane_has_rows_at_any_width(pane: str, width: int, block: View) -> None:
    content = PANES[pane](block, width)
    assert len(content.rows) > 0
    assert len(content.refs) == len(content.rows)
    keys = [row.key for row in content.rows if row.key]
    assert len(keys) == len(set(keys))
    for row, ref in zip(content.rows, content.refs, strict=True):
        assert row.text.isprintable()
        assert not row.ref or row.ref == ref


@pytest.mark.parametrize("pane", PANES)
def test_a_pane_of_an_empty_recording_says_something(
    pane: str, block_records: list[AnyRecord]
) -> None:
    view = view_of([block_records[0], End(status="ok", seconds=0.1)], "")
    content = PANES[pane](view, 60)
    assert any(row.text.strip() for row in content.rows)


def test_rows_are_made_when_they_are_looked_at(block: View) -> None:
    made = []

    def make(index: int):  # type: ignore[no-untyped-def]
        made.append(index)
        return PANES["source"](block, 60).rows[0]

    rows = Rows(1000, make, [""] * 1000)
    assert len(rows) == 1000
    assert rows[5:7]
    assert rows[-1] is rows[999]
    assert made == [5, 6, 999]
    with pytest.raises(IndexError):
        rows[1000]


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_two_panes_never_share_a_title(block: View, name: str, language: str) -> None:
    view = replace(block, language=language)  # type: ignore[arg-type]
    arrangement = ARRANGEMENTS[name]
    for columns in (arrangement.columns, arrangement.wide):
        shown = [slot.pane for column in columns for slot in column.slots]
        shown += [arrangement.top.pane] if arrangement.top else []
        found = [PANES[pane](view, 60) for pane in shown]
        titles = [(content.name, content.subject) for content in found]
        assert len(set(titles)) == len(titles)
