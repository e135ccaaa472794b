"""Where little needs attention, the overview shows what came of the compile."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.trace.records import End, GraphBreak, Recompile, Waiting
from tcw.viewers.panes import findings
from tcw.viewers.panes.targets import ToStage
from tcw.viewers.panes.view import View
from tests.block_trace import block_trace
from tests.no_torch.viewers.panes.conftest import view_of


def opens(view: View) -> list[str]:
    found = (row.opens for row in findings.content(view, 120).rows)
    return [one.name for one in found if isinstance(one, ToStage)]


def clean() -> View:
    return view_of([one for one in block_trace() if not isinstance(one, GraphBreak | Recompile)])


def test_kernels_fusion_and_memory_are_shown_where_all_is_well() -> None:
    view = clean()
    assert not view.summary.findings
    assert opens(view) == ["kernels", "fusion", "memory"]
    said = "\n".join(row.text for row in findings.content(view, 120).rows)
    for words in ("addmm qkv", "amax", "without reuse"):
        assert words in said


def test_a_driven_run_that_is_over_shows_them_too() -> None:
    records = [one for one in block_trace() if not isinstance(one, GraphBreak | Recompile | End)]
    assert not opens(view_of(records)), "it still runs"
    over = Waiting(number=1, kind="end", why="the run is over", stage="run")
    view = view_of([*records, over])
    assert opens(view) == ["kernels", "fusion", "memory"]
    said = "\n".join(row.text for row in findings.content(view, 120).rows)
    assert "nothing needs attention: no break, no recompile" in said


def test_only_the_headings_can_be_selected() -> None:
    rows = findings.content(clean(), 120).rows
    assert all(row.key == "" or isinstance(row.opens, ToStage) for row in rows)


def test_kernels_are_not_told_twice() -> None:
    view = replace(clean(), beside=frozenset({"findings", "kernels"}))
    assert opens(view) == ["fusion", "memory"]


def test_a_finding_or_two_leave_room_for_them() -> None:
    view = view_of([one for one in block_trace() if not isinstance(one, GraphBreak)])
    assert 0 < len(view.summary.findings) <= findings.FEW
    assert opens(view) == ["kernels", "fusion", "memory"]


def test_findings_are_all_there_is_where_there_are_many(block: View) -> None:
    assert len(block.summary.findings) > findings.FEW
    assert opens(block) == []
