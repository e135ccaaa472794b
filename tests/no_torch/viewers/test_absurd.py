"""Numbers and texts that no recording writes, within the bounds of their records: views neither
raise nor allocate by them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from msgspec import structs

from tcw.compiler.protocol.decision import split_id
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import (
    Account,
    AnyRecord,
    Buffer,
    Decided,
    End,
    FusionRound,
    MemoryPlan,
    Note,
    Run,
    Settings,
    StackValue,
    Step,
    Timed,
    Waiting,
)
from tcw.viewers import recording as recordings
from tcw.viewers.kit.figures import cells_of
from tcw.viewers.kit.table import table
from tcw.viewers.labels import operations_text
from tcw.viewers.losses import losses_sentences, losses_short
from tcw.viewers.panes import account, bytecode, memory_chart, notes, recompiles, source, waterfall
from tcw.viewers.recording import Recording
from tcw.viewers.summary.fusion import node_labels
from tcw.viewers.summary.memory_plans import alive
from tcw.viewers.summary.steps import book_of
from tcw.viewers.text.lines import to_text
from tcw.viewers.words import DEEPEST, indent
from tests.block_trace import block_trace
from tests.no_torch import profiles
from tests.no_torch.stepping import attention
from tests.no_torch.traces import FILE, at, graph_break, opening
from tests.no_torch.viewers.panes.conftest import view_of

INDEX, LINE = 10_000_000, 2**31 - 1
"""The largest that records take."""


@contextmanager
def within(megabytes: int) -> Iterator[None]:
    tracemalloc.start()
    yield
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < megabytes << 20


def changed(
    records: list[AnyRecord], kind: type, change: Callable[[AnyRecord], AnyRecord]
) -> list[AnyRecord]:
    return [change(record) if isinstance(record, kind) else record for record in records]


@pytest.mark.parametrize("life", [(INDEX, INDEX), (0, INDEX), (INDEX, 0)])
def test_a_memory_plan_is_drawn_by_its_steps(life: tuple[int, int]) -> None:
    def far(plan: AnyRecord) -> AnyRecord:
        assert isinstance(plan, MemoryPlan)
        first, last = life
        moved = [structs.replace(buffer, first=first, last=last) for buffer in plan.buffers]
        return structs.replace(plan, buffers=tuple(moved))

    view = view_of(changed(block_trace(), MemoryPlan, far))
    with within(20):
        for width in (60, 160):
            rows = list(memory_chart.content(view, width).rows)
            assert max(len(row.text) for row in rows) < 2000


def test_what_is_alive_at_each_step() -> None:
    """With the figures that adding up each buffer's life, step by step, gives."""
    buffers = (
        Buffer(name="a", bytes=8, first=0, last=2),
        Buffer(name="b", bytes=4, first=1, last=INDEX),
        Buffer(name="c", bytes=8, first=2, last=3, reuses="a"),
        Buffer(name="d", bytes=1, first=3, last=1),
        Buffer(name="e", bytes=2, first=INDEX, last=INDEX, kind="output"),
        Buffer(name="f", bytes=100, first=0, last=3, kind="input"),
    )
    plan = MemoryPlan(graph="g", steps=("k0", "k1", "k2", "k3"), buffers=buffers)
    assert alive(plan) == [8, 12, 12, 12]


def test_a_plan_of_very_many_steps_and_buffers() -> None:
    count = 30_000
    buffers = tuple(Buffer(name=f"b{n}", bytes=8, first=0, last=INDEX) for n in range(count))
    lowered = "0/0/forward/lowered"
    plan = MemoryPlan(graph=lowered, steps=("",) * count, buffers=buffers)
    records = [one for one in block_trace() if not isinstance(one, (MemoryPlan, End))]
    view = view_of([*records, plan])
    with within(100):
        content = memory_chart.content(view, 120)
        assert len(content.rows) > count
        assert "the first 5,000 of 30,000 steps" in "".join(words for words, _ in content.right)
        assert content.rows[100].key.startswith("buffer:")


def test_deep_steps_are_indented_within_the_screen() -> None:
    assert indent(2) == "    "
    assert indent(INDEX) == "  " * DEEPEST
    records = changed(attention(), Step, lambda one: structs.replace(one, depth=INDEX))
    from tcw.viewers.text.explain import explain

    with within(40):
        text = to_text(explain(Recording(records), 100, show=("steps",)), 100)
    assert max(map(len, text.split("\n"))) <= 100


def test_a_column_is_no_wider_than_the_table() -> None:
    rows = [["n" * 100_000, "1"], *(["x", "2"] for _ in range(5000))]
    with within(60):
        lines = table(rows, "lr", 80)
    assert max(len(line.text) for line in lines) <= 90


def test_checkpoints_of_steps_take_what_the_steps_take() -> None:
    """A stack of 20,000 values under 5,000 steps: each checkpoint copies it."""
    first = next(one for one in attention() if isinstance(one, Step))
    big = structs.replace(first, step=0, pushed=(StackValue(kind="Tensor"),) * 20_000)
    small = [structs.replace(first, step=n, pushed=(), popped=0, ip=n) for n in range(1, 5000)]
    recording = Recording([big, *small])
    with within(12):
        book = book_of(recording)
    for step in (small[-1], small[100], small[2500], big):
        state = book.state(step)
        assert state is not None
        assert state.step is step
        assert len(state.stack) == 20_000


def test_labels_of_fused_nodes_do_not_double() -> None:
    fused = tuple(("op9", "op9", "op9") for _ in range(300))
    chain = tuple((f"f{n}", f"f{n}", f"f{n + 1}") for n in range(300))
    rounds = [FusionRound(graph="g", round=1, fused=fused + chain)]
    with within(5):
        labels = node_labels(Recording(rounds))
    assert labels["g", "op9"] == ""
    assert labels["g", "f300"] == "f0"


@pytest.mark.parametrize("value", [1e9, -1e9, 1e-300, 0.0])
def test_bars_stay_in_their_room(value: float) -> None:
    assert [cells_of(one, 10.0, 8) for one in (5.0, 10.0, 20.0, -1.0, 0.0)] == [4, 8, 8, 0, 0]
    assert cells_of(1e9, 1e-300, 8) == 8

    def extreme(record: AnyRecord) -> AnyRecord:
        assert isinstance(record, Account)
        time = Timed(median=value, spread=value, runs=1)
        lines = tuple(structs.replace(line, time=time) for line in record.lines)
        return structs.replace(record, lines=lines, remainder=-value)

    view = view_of(changed(profiles.block_profile(), Account, extreme))
    with within(5):
        assert all(len(row.text) < 300 for row in account.content(view, 120).rows)


def test_no_time_at_all() -> None:
    zero = Timed(median=0.0, spread=0.0, runs=1)
    records = [
        structs.replace(one, eager=zero, compiled=zero) if hasattr(one, "compiled") else one
        for one in profiles.training()
        if not hasattr(one, "hits")
    ]
    view = view_of(records)
    assert list(waterfall.content(view, 140).rows)


def test_a_break_behind_the_end_of_its_file() -> None:
    records = [*opening(), graph_break(location=at(LINE, LINE, LINE))]
    content = source.content(view_of(records), 80, annotate=True)
    assert len(list(content.rows)) == len(view_of(records).recording.source(FILE))


def test_texts_that_should_be_numbers_or_names() -> None:
    assert refs.split_source("src:a:b.py:7") == ("a:b.py", 7)
    assert refs.split_source("src:a.py:x") == ("a.py", 0)
    assert refs.split_source("src:" + "9" * 5000) == ("", 0)
    assert refs.split_kernel("k:k4:²") == ("k4", None)
    assert split_id("tcw/0/0/forward/fuse/a+b")[1] == "fuse"
    assert split_id("fuse")[1] == split_id("")[1] == ""
    assert bytecode.argument_words("CALL", "9" * 5000) == "9" * 5000
    assert bytecode.argument_words("BINARY_OP", "5") == "*"
    assert operations_text("op1_op" + "9" * 5000).startswith("op1_op999")
    view = view_of([*block_trace(), Note(on="src:a.py:x", text="t"), Note(on="src", text="t")])
    assert list(notes.content(view, 80).rows)


def test_calls_with_very_long_arguments() -> None:
    def long(record: AnyRecord) -> AnyRecord:
        return (
            structs.replace(record, function="f" * 100_000)
            if hasattr(record, "function")
            else record
        )

    view = view_of([long(one) for one in block_trace()])
    with within(30):
        list(recompiles.cache(view, 100).rows)


def test_runs_share_what_belongs_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are there once, however many runs there are; of a trace of absurdly many runs the
    last are not parts of their own, and that is said."""
    monkeypatch.setattr(recordings, "MOST_SHARED", 500)
    settings = Settings(file="a.py")
    head = [one for one in opening() if not isinstance(one, Decided)]
    runs: list[AnyRecord] = [Run(number=n + 1, settings=settings) for n in range(1000)]
    recording = Recording([*head, *runs])
    assert 2 < len(recording.runs) < 300
    assert len(recording.records) == len(head) + 1000
    shown = len(recording.runs)
    assert losses_sentences(recording) == [f"only the first {shown} runs of 1,000 are shown"]
    assert (
        losses_short(recording.losses, len(recording.runs_left_out))
        == f"{1000 - shown} runs not shown"
    )
    part = next(iter(recording.runs.values()))
    assert part.source(FILE) == recording.source(FILE) != []
    waits = Waiting(number=1, kind="end", why="", stage="load")
    recording.feed([waits])
    assert recording.last(Waiting) is waits
    assert all(run.last(Waiting) is None for run in recording.runs.values())
