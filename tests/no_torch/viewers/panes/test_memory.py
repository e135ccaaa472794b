from __future__ import annotations

from compiler.trace.records import AnyRecord, Buffer, MemoryPlan
from tests.no_torch.viewers.panes.conftest import view_of
from viewers.panes import memory
from viewers.panes.view import View


def texts(view: View) -> list[str]:
    return [row.text for row in memory.content(view, 100).rows]


def test_a_bar_lasts_as_long_as_its_buffer(block: View) -> None:
    rows = {row.key: row.text for row in memory.content(block, 120).rows}
    assert rows["buffer:buf14"].count("█") > rows["buffer:buf8"].count("█") > 0
    assert "← buf16" in rows["buffer:buf18"]
    assert "saved" in rows["buffer:buf4"]


def test_what_is_alive_peaks_where_the_plan_says(block: View) -> None:
    assert any("peak 6.1 MB" in line and "k4 softmax" in line for line in texts(block))


def test_inputs_are_folded(block_records: list[AnyRecord]) -> None:
    graph = "0/0/forward/lowered"
    plan = MemoryPlan(
        graph=graph,
        steps=("k0 add",),
        buffers=(
            Buffer(name="primals_1", bytes=1024, first=0, last=0, kind="input"),
            Buffer(name="primals_2", bytes=1024, first=0, last=0, kind="input"),
            Buffer(name="buf0", bytes=None, first=0, last=0, kind="output"),
        ),
    )
    kept = [record for record in block_records if not isinstance(record, MemoryPlan)]
    view = view_of([*kept, plan])
    lines = texts(view)
    assert lines[1].strip() == "▸ 2 inputs, 2 KB, owned by the caller"
    assert not any("primals_1" in line for line in lines)
    assert any("symbolic" in line for line in lines)
    view.unfolded.add(f"{graph}:inputs")
    assert any("primals_1" in line for line in texts(view))


def test_a_graph_without_a_plan_says_so(block: View) -> None:
    block.compile_id = "2/0"
    assert "no memory plan" in texts(block)[1]
