"""Traces that grow, that stop, that are damaged, and that mean harm."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest

from tcw.compiler.trace.records import (
    AnyRecord,
    CallStart,
    End,
    Failure,
    FrameStart,
    Graph,
    GraphBreak,
    Guard,
    Guards,
    Kernel,
    Location,
    Node,
    Output,
    Recompile,
    Source,
    Start,
    Text,
)
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.panes.arrangement import ARRANGEMENTS
from tcw.workbench.tui.app import run
from tcw.workbench.tui.hints import GOES
from tcw.workbench.tui.stage import Stage
from tests.block_trace import block_trace
from tests.no_torch.tui.conftest import Open, encoded

ESCAPES = "\x1b[2J\x1b]0;pwned\x07[/nope][@click=app.quit]x[/]\u202etxt\u200b\x9b31m"
LONG = "n" * 10_000


async def test_a_growing_trace(open_trace: Open, tmp_path: Path) -> None:
    records = block_trace()
    path = tmp_path / "grows.tcw"
    middle = next(i for i, record in enumerate(records) if isinstance(record, GraphBreak))
    path.write_bytes(encoded(records[: middle + 1]))
    with path.open("ab") as recording:
        fcntl.flock(recording, fcntl.LOCK_EX)
        await _grows(open_trace, path, recording, records, middle)


async def _grows(
    open_trace: Open, path: Path, stream: BinaryIO, records: list[AnyRecord], middle: int
) -> None:
    async with open_trace(path) as reader:
        assert reader.bench.state == "running"
        assert "▸ running" in reader.text()
        assert "✗1 break" in reader.text()
        data = encoded(records[middle + 1 :])
        stream.write(data[: len(data) // 2 + 7])
        stream.flush()
        await reader.until(lambda: len(reader.bench.recording.records) > middle + 50)
        assert reader.bench.state == "running"
        stream.write(data[len(data) // 2 + 7 :])
        stream.flush()
        await reader.until(lambda: reader.bench.state == "finished")
        assert "■ finished" in reader.text()
        assert "✗2 breaks" in reader.text()
        assert len(reader.bench.recording.records) == len(records)


async def test_a_trace_whose_writer_has_the_number_of_another(
    open_trace: Open, tmp_path: Path
) -> None:
    """A process or a thread of this machine may have the number that was the recording's."""
    start, *records = block_trace()
    path = tmp_path / "killed.tcw"
    mine = msgspec.structs.replace(start, pid=os.getpid())
    path.write_bytes(encoded([mine, *records[: len(records) // 2]]))
    async with open_trace(path) as reader:
        assert reader.bench.state == "incomplete"


async def test_a_trace_whose_writer_is_gone(open_trace: Open, tmp_path: Path) -> None:
    path = tmp_path / "killed.tcw"
    data = encoded(block_trace())
    path.write_bytes(data[: len(data) // 2])
    async with open_trace(path) as reader:
        assert reader.bench.state == "incomplete"
        assert "◌ incomplete" in reader.text()


async def test_damaged_lines_are_counted(open_trace: Open, tmp_path: Path) -> None:
    path = tmp_path / "damaged.tcw"
    lines = encoded(block_trace()).split(b"\n")
    lines[100:100] = [b"{broken", b'{"record":"of-the-future"}']
    path.write_bytes(b"\n".join(lines))
    async with open_trace(path) as reader:
        assert "2 lines unreadable" in reader.text()


async def test_a_failure_is_the_answer(open_trace: Open, tmp_path: Path) -> None:
    path = tmp_path / "failed.tcw"
    source = "def f(x):\n    return x @ x.T\n"
    path.write_bytes(
        encoded(
            [
                block_trace()[0],
                Text(hash=text_hash(source), body=source),
                Source(file="/home/ada/block.py", text=text_hash(source)),
                Failure(
                    doing="call 1, capture of 0/0",
                    type="RuntimeError",
                    message="size mismatch",
                    location=Location(file="/home/ada/block.py", line=2),
                    source_line="    return x @ x.T",
                    eager_fails=True,
                ),
                End(status="failed", seconds=1.0),
            ]
        )
    )
    async with open_trace(path) as reader:
        shown = reader.text()
        assert "✗ failed" in shown
        assert "failed in call 1, capture of 0/0" in shown
        assert "block.py:2  return x @ x.T" in shown
        assert "Eager fails too: torch.compile is not the cause" in shown


@pytest.mark.parametrize("name", [name for name, _ in GOES])
async def test_an_empty_recording_says_so_everywhere(
    name: str, open_trace: Open, tmp_path: Path
) -> None:
    path = tmp_path / "empty.tcw"
    path.write_bytes(encoded([block_trace()[0], End(status="ok", seconds=0.1)]))
    async with open_trace(path) as reader:
        await reader.go(name)
        await reader.press("j", "G", "enter", "n", "e", "right_square_bracket",
                           "right_parenthesis", "o", "R", "U", "y", "z", "z", "vertical_line",
                           "tab", "enter")  # fmt: skip
        assert reader.app.is_running
        assert reader.cells() == [120] * 40


def hostile() -> list[object]:
    """A recording in which every name and message is out to harm the terminal."""
    file = f"/home/{ESCAPES}/m.py"
    place = Location(file=file, line=1, column=2, end_column=9, function=ESCAPES)
    source = f"x = '{ESCAPES}'\ny = {LONG}\n\tz = '\u4f60\u597d' * 3\n"
    kernel = f"void {ESCAPES}({LONG})\n{{\n}}\n"
    nodes = (
        Node(name=ESCAPES, op="call_function", target=ESCAPES, args=ESCAPES, location=place),
        Node(name=LONG, op="call_function", target=LONG, location=place, module=LONG),
    )
    first = block_trace()[0]
    assert isinstance(first, Start)
    return [
        first,
        Text(hash=text_hash(source), body=source),
        Text(hash=text_hash(kernel), body=kernel),
        Source(file=file, text=text_hash(source)),
        CallStart(call=1),
        FrameStart(compile_id="0/0", attempt=0, function=ESCAPES, location=place, call=1),
        GraphBreak(
            compile_id="0/0", attempt=0, gb="GB\x1b[31m", type=ESCAPES, context=ESCAPES,
            explanation=LONG, hints=(ESCAPES,), location=place, url=ESCAPES, call=1,
        ),
        Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes, ops=2, call=1),
        Guards(
            compile_id="0/0",
            guards=(Guard(kind=ESCAPES, name=ESCAPES, source=LONG, code=(ESCAPES,), value=LONG),),
        ),
        Recompile(compile_id="0/1", call=2, failed=(), function=ESCAPES, reason=ESCAPES),
        Kernel(
            id="k0", graph="0/0", name=ESCAPES, label=ESCAPES, language="cpp",
            text=text_hash(kernel),
        ),
        Output(stream="stdout", text=f"{ESCAPES}\n{LONG}\r\n"),
        End(status="failed", seconds=1.0, reason=ESCAPES),
    ]  # fmt: skip


async def test_hostile_text_is_shown_and_does_nothing(open_trace: Open, tmp_path: Path) -> None:
    path = tmp_path / "hostile.tcw"
    path.write_bytes(encoded(hostile()))  # type: ignore[arg-type]
    async with open_trace(path, (80, 24)) as reader:
        for name in ("overview", "source", "break", "recompiles", "guards", "kernels", "output"):
            await reader.go(name)
            for width, height in ((80, 24), (200, 55)):
                await reader.pilot.resize_terminal(width, height)
                await reader.press("tab", "j", "l", "enter")
                assert "".join(reader.lines()).isprintable(), name
                assert reader.cells() == [width] * height, name
                await reader.press("escape")
        assert reader.app.is_running
        await reader.go("overview")
        assert "[/nope]" in reader.text()


def test_what_cannot_be_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "nowhere.tcw") == 2
    assert "nowhere.tcw" in capsys.readouterr().err


async def test_what_was_recorded_for_a_gpu_opens_in_triton(
    open_trace: Open, tmp_path: Path
) -> None:
    records = block_trace()
    start = records[0]
    assert isinstance(start, Start)
    settings = msgspec.structs.replace(start.settings, device="cuda", arch="sm_90")
    path = tmp_path / "cuda.tcw"
    path.write_bytes(encoded([msgspec.structs.replace(start, settings=settings), *records[1:]]))
    async with open_trace(path) as reader:
        await reader.go("source")
        await reader.until(lambda: reader.pane("kernel").content.name == "triton")
        await reader.press("left_parenthesis")
        await reader.until(lambda: reader.pane("kernel").content.name == "c++")
        reader.bench.navigator.grown()
        assert reader.bench.view.language == "cpp"


async def test_a_screen_that_goes_takes_no_panes(open_trace: Open, block_file: Path) -> None:
    """The app may end between a record and the panes that it brings."""
    async with open_trace(block_file) as reader:
        bench = reader.bench
        stage = Stage(lambda: bench.view, lambda: bench.look)
        await stage.show(ARRANGEMENTS["source"], 120, "", 2)
        assert not stage.children
