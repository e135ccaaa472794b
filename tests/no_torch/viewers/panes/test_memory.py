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
    assert " ▸ 2 inputs, 2 KB, owned by the caller" in lines
    assert not any("primals_1" in line for line in lines)
    assert any("symbolic" in line for line in lines)
    view.unfolded.add(f"{graph}:inputs")
    assert any("primals_1" in line for line in texts(view))


def test_a_graph_without_a_plan_says_so(block: View) -> None:
    block.compile_id = "2/0"
    assert "no memory plan" in texts(block)[1]


def plan_of(*buffers: Buffer, peak: int | None = 2048, without: int | None = 2048) -> MemoryPlan:
    return MemoryPlan(
        graph="0/0/forward/lowered",
        steps=("k0 mul, softmax", "extern addmm"),
        buffers=buffers,
        peak_bytes=peak,
        without_reuse_bytes=without,
    )


def test_reuse_that_does_not_lower_the_peak_says_so(block_records: list[AnyRecord]) -> None:
    kept = [record for record in block_records if not isinstance(record, MemoryPlan)]
    taken = Buffer(name="buf1", bytes=1024, first=1, last=1, reuses="buf0")
    first = Buffer(name="buf0", bytes=1024, first=0, last=0)
    lines = "\n".join(texts(view_of([*kept, plan_of(first, taken)])))
    assert "1 buffer in another's memory, 1 KB not allocated again" in lines
    assert "peak 2 KB (the same without reuse)" in lines
    in_place = Buffer(name="buf1", bytes=1024, first=0, last=1, reuses="buf0", inplace=True)
    lines = "\n".join(texts(view_of([*kept, plan_of(first, in_place, peak=1024)])))
    assert "1 buffer in another's memory (1 in place)" in lines
    assert "peak 1 KB (2 KB without reuse)" in lines


def test_steps_are_named_in_few_words(block_records: list[AnyRecord]) -> None:
    kept = [record for record in block_records if not isinstance(record, MemoryPlan)]
    buffer = Buffer(name="buf0", bytes=1024, first=0, last=0)
    view = view_of([*kept, plan_of(buffer)])
    wide, narrow = (
        next(row.text for row in memory.content(view, width).rows if "buffer " in row.text)
        for width in (100, 52)
    )
    assert "addmm" in wide
    assert "k0" in narrow


def test_the_peak_comes_first(block: View) -> None:
    assert texts(block)[0].strip().startswith("peak 6.1 MB (9.1 MB without reuse)")
