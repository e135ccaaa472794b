from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, Buffer, Decided, Kernel, MemoryPlan
from tcw.viewers.kit.spans import width_of
from tcw.viewers.panes import memory_chart
from tcw.viewers.panes.targets import Fold
from tcw.viewers.panes.view import View
from tcw.viewers.summary.memory_plans import alive, places
from tests.no_torch.viewers.panes.conftest import view_of


def texts(view: View) -> list[str]:
    return [row.text for row in memory_chart.content(view, 100).rows]


def test_a_bar_lasts_as_long_as_its_buffer(block: View) -> None:
    rows = {row.key: row.text for row in memory_chart.content(block, 120).rows}
    assert rows["buffer:buf14"].count("█") > rows["buffer:buf8"].count("█") > 0
    assert "→ buf18 +1" in rows["buffer:buf16"]
    assert "→ buf1 " in rows["buffer:buf1"]
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
    assert "1 buffer reuses memory, saves 1 KB" in lines
    assert "peak 2 KB (the same without reuse)" in lines
    in_place = Buffer(name="buf1", bytes=1024, first=0, last=1, reuses="buf0", inplace=True)
    lines = "\n".join(texts(view_of([*kept, plan_of(first, in_place, peak=1024)])))
    assert "1 buffer reuses memory (1 in place)" in lines
    assert "peak 1 KB (2 KB without reuse)" in lines


def test_steps_are_named_in_few_words(block_records: list[AnyRecord]) -> None:
    kept = [record for record in block_records if not isinstance(record, MemoryPlan)]
    buffer = Buffer(name="buf0", bytes=1024, first=0, last=0)
    view = view_of([*kept, plan_of(buffer)])
    wide, narrow = (
        next(row.text for row in memory_chart.content(view, width).rows if "buffer " in row.text)
        for width in (100, 52)
    )
    assert "addmm" in wide
    assert "k0" in narrow


def test_the_peak_comes_first(block: View) -> None:
    assert texts(block)[0].strip().startswith("peak 6.1 MB (9.1 MB without reuse)")


def test_a_place_that_several_took_over_unfolds(block: View) -> None:
    opens = next(r.opens for r in memory_chart.content(block, 120).rows if r.key == "buffer:buf16")
    assert isinstance(opens, Fold)
    block.unfolded.add(opens.key)
    rows = [row for row in memory_chart.content(block, 120).rows if row.key]
    names = [row.key for row in rows]
    at = names.index("buffer:buf16")
    assert names[at : at + 3] == ["buffer:buf16", "buffer:buf18", "buffer:buf19"]
    assert len(names) == len(set(names))


def test_a_taker_begins_where_the_buffer_before_it_ends(block: View) -> None:
    row = next(r for r in memory_chart.content(block, 120).rows if r.key == "buffer:buf16")
    bars = [(len(words), role) for words, role in row.body if words.strip()]
    assert [role for _, role in bars] == ["bar", "bar-accent", "bar-hot"]


def test_the_bar_says_why_and_what_it_saves(block_records: list[AnyRecord]) -> None:
    id = "tcw/0/0/forward/reuse/buf18"
    reason = "buf16 is read for the last time"
    decided = Decided(
        id=id, graph="0/0/forward", kind="reuse", default="reuse", choice="reuse",
        rule="in-place", reason=reason,
    )  # fmt: skip
    view = view_of([*block_records, decided])
    assert memory_chart.verdict(view, 120) == []
    view.buffer = "buf18"
    title, rule, saves = memory_chart.verdict(view, 120)
    assert title.text.startswith("buf18 takes the memory of buf16")
    assert title.right[0][0] == id
    assert reason in rule.text
    assert "one allocation of 512 KB; the plan's peak is 6.1 MB at k4 softmax" in saves.text
    row = next(r for r in memory_chart.content(view, 120).rows if r.key == "buffer:buf16")
    assert row.decision == id
    view.buffer = "buf8"
    assert memory_chart.verdict(view, 120)[1].text.startswith("lives    from k3 bmm")


def test_orders(block: View) -> None:
    def order() -> list[str]:
        return [
            row.key for row in memory_chart.content(block, 120).rows if row.key.startswith("buffer")
        ]

    born = order()
    block.order = "size"
    assert order()[:2] == ["buffer:buf8", "buffer:buf14"]
    block.order = "life"
    assert sorted(order()) == sorted(born) != order()


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-1, 12)), max_size=12),
    st.integers(1, 10),
)
def test_any_plan_is_drawn_within_its_cells(lives: list[tuple[int, int, int]], steps: int) -> None:
    """Also one that makes no sense: buffers that take over each other, or live past the end."""
    buffers = tuple(
        Buffer(
            name=f"buf{number}",
            bytes=None if size == 5 else size * 100,
            first=min(first, steps - 1),
            last=first + size,
            reuses=f"buf{donor}" if donor >= 0 else "",
        )
        for number, (first, size, donor) in enumerate(lives)
    )
    plan = MemoryPlan(graph="g", steps=tuple(f"k{n}" for n in range(steps)), buffers=buffers)
    found = places(plan)
    shown = [buffer.name for place in found for buffer in place.buffers]
    assert sorted(shown) == sorted(buffer.name for buffer in buffers)
    assert len(alive(plan)) == steps
    chart = memory_chart._Chart(view_of([]), plan, 100)
    for place in found:
        row = chart.row(memory_chart._Drawn(place))
        assert width_of(row.body) == chart.cells


def test_a_step_is_named_in_full_where_there_is_room(block: View) -> None:
    records = [
        structs.replace(record, steps=("k4 a kernel of a rather long name",), buffers=())
        if isinstance(record, MemoryPlan)
        else record
        for record in block.recording.records
        if not isinstance(record, Kernel)
    ]
    rows = memory_chart.content(view_of(records), 150).rows
    assert any("a kernel of a rather long name" in row.text for row in rows)
