"""A trace under a size: what is left out, and that it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.bounded import LEVELS, SizeBound, trace_size
from tcw.compiler.trace.records import (
    End,
    Environment,
    FrameEnd,
    FrameStart,
    LeftOut,
    Location,
    Lowered,
    Recompile,
    Record,
    Settings,
    Source,
    Start,
    Text,
)
from tcw.compiler.trace.writer import TraceWriter
from tcw.viewers.losses import losses_sentences
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.text.explain import explain
from tests.long import mostly_long

SIZE = 1 << 20


def written(file: Path, compiles: int, end: bool = True) -> Recording:
    """A recording of this many compiles, each with details of about 1 KB."""
    place = Location(file="train.py", line=1)
    with file.open("wb") as stream:
        writer = TraceWriter(stream.write, bound=SizeBound(SIZE))
        start = Start(
            schema_version=1, tool_version="", settings=Settings(file="train.py"), python="",
            platform="", pid=1, time=0.0,
        )  # fmt: skip
        writer.emit(start)
        for number in range(compiles):
            id = f"{number}/0"
            writer.emit(
                FrameStart(compile_id=id, attempt=0, function="step", location=place, call=1)
            )
            writer.text(f"code of {number}" * 20)
            for node in range(10):
                writer.emit(Lowered(graph=id, node=f"n{node}", target="aten.add", ir="Pointwise"))
            writer.emit(Recompile(compile_id=id, call=1, failed=()))
            writer.emit(FrameEnd(compile_id=id, status="compiled", seconds=0.1))
        if end:
            assert writer.bound is not None
            if (left := writer.bound.last()) is not None:
                writer.emit(left)
            writer.emit(End(status="ok", seconds=1.0))
    return Recording.open(file)


def test_a_short_recording_has_everything(tmp_path: Path) -> None:
    found = written(tmp_path / "a.tcw", 100)
    assert len(found.all(Lowered)) == 1000
    assert not found.all(LeftOut)


@pytest.mark.parametrize("compiles", mostly_long((1_000, 4_000, 8_000), (1_000,)))
def test_of_a_long_one_less_and_less(tmp_path: Path, compiles: int) -> None:
    file = tmp_path / "a.tcw"
    found = written(file, compiles)
    assert file.stat().st_size <= SIZE
    assert not found.losses
    assert found.end is not None
    assert found.end.status == "ok"
    last = found.all(LeftOut)[-1]
    counted = len(found.all(Lowered)) + last.records["lowered"]
    assert counted == compiles * 10, "what is written and what is left out"
    frames = len(found.all(FrameStart)) + last.records.get("frame-start", 0)
    assert frames == compiles
    assert summarise(found).end is not None
    (words,) = losses_sentences(found)
    assert words.startswith("to stay under 1.0 MB, compiles from ")
    assert f"{sum(last.records.values()):,} records left out" in words
    assert any(words[:40] in one.text for one in explain(found))


def test_a_killed_one_says_it_too(tmp_path: Path) -> None:
    found = written(tmp_path / "a.tcw", 5_000, end=False)
    assert found.end is None
    assert "without lowering" in losses_sentences(found)[0]


def test_the_user_s_source_is_in_the_outline_and_code_is_not() -> None:
    lines: list[bytes] = []
    bound = SizeBound(SIZE)
    writer = TraceWriter(lines.append, bound=bound)
    bound.written = SIZE // 2
    writer.emit(Source(file="a.py", text=writer.text("first", needed=True)))
    assert bound.level == "outline"
    size = len(lines)
    key = writer.text("code of a kernel")
    assert len(lines) == size
    assert bound.left_out == {"text": 1}
    writer.emit(Source(file="b.py", text=writer.text("code of a kernel", needed=True)))
    assert key.encode() in lines[size], "left out, and needed later"
    assert b"code of a kernel" in b"".join(lines[size:])


def test_a_record_as_large_as_the_bound_is_left_out() -> None:
    lines: list[bytes] = []
    writer = TraceWriter(lines.append, bound=SizeBound(SIZE))
    writer.emit(Text(hash="a", body="x" * 2 * SIZE))
    assert lines == []
    assert writer.emit(End(status="ok", seconds=0.0))


def test_each_level_begins_at_its_part_of_the_size() -> None:
    bound = SizeBound(SIZE)
    begins = {}
    for _ in range(200):
        bound.takes(Environment(torch="2.13"), SIZE // 200)
        if (step := bound.step()) is not None:
            begins[step.level] = bound.written / SIZE
    assert begins == {
        "outline": pytest.approx(0.5, abs=0.01),
        "headlines": pytest.approx(0.75, abs=0.01),
        "end": pytest.approx(0.98, abs=0.01),
    }


def test_what_a_level_keeps() -> None:
    place = Location(file="train.py", line=1)
    frame = FrameStart(compile_id="0/0", attempt=0, function="step", location=place, call=1)
    records: list[Record] = [
        *(
            Lowered(graph="0/0", node="n", target="aten.add", ir="Pointwise"),
            Source(file="a.py", text=""),
        ),
        *(frame, End(status="ok", seconds=0.0)),
    ]
    taken = {}
    for level in LEVELS:
        bound = SizeBound(SIZE)
        bound.level = level
        taken[level] = [type(record) for record in records if bound.takes(record, 1)]
    assert taken == {
        "all": [Lowered, Source, FrameStart, End],
        "outline": [Source, FrameStart, End],
        "headlines": [FrameStart, End],
        "end": [End],
    }


def test_the_last_part_is_kept_for_the_end() -> None:
    bound = SizeBound(SIZE)
    length = SIZE // 100
    many = Lowered(graph="0/0", node="n", target="aten.add", ir="Pointwise")
    assert sum(bound.takes(many, length) for _ in range(100)) == 98, "its level is not asked again"
    assert bound.takes(End(status="ok", seconds=0.0), length)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1MB", SIZE), ("1.5 gb", 3 << 29), ("2G", 2 << 30), ("4000000", 4_000_000)],
)
def test_sizes(text: str, size: int) -> None:
    assert trace_size(text) == size


@pytest.mark.parametrize("text", ["", "many", "-1MB", "1 byte", "100", "1KB", "1e9"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a size|too small"):
        trace_size(text)
