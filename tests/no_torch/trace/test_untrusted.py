"""A trace from anyone: what it may cost to read, and what it may claim."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect, structs

from tcw.compiler.trace import reader
from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.reader import FileFollower, TraceDecoder, TraceError, read_trace
from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Kernel,
    Note,
    Progress,
    Run,
    Settings,
    Start,
    Warned,
)
from tcw.viewers.losses import losses_sentences, losses_short
from tcw.viewers.recording import Recording
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tcw.workbench.worker.trace_file import TraceFile
from tests.block_trace import block_trace
from tests.no_torch.every_record import every_record
from tests.no_torch.traces import kernel

DOOR = Path(__file__).parents[3] / "tcw" / "__main__.py"
UNBOUNDED = {
    "DynamicSize.value", "DynamicSize.lower", "DynamicSize.upper", "WhatIf.max_error",
    "OutputError.max_abs", "OutputError.max_rel", "Numerics.max_abs", "Numerics.max_rel",
    "Numerics.compiled_off", "Numerics.eager_off", "WhatIf.compiled_off", "WhatIf.eager_off",
    "Numerics.rounding", "WhatIf.rounding",
    "OutputPrecision.error", "OutputPrecision.eager_error", "OutputPrecision.bound",
    "OutputPrecision.lean", "OutputPrecision.lean_bound",
}  # fmt: skip
"""Floats that a user's program may make as large as a float can be."""


def numbers(kind: inspect.Type, where: str = "") -> Iterator[tuple[str, inspect.Type]]:
    """(`Location.line`, its type) of all numbers in a type."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            yield where, kind
        case inspect.StructType():
            for field in kind.fields:
                yield from numbers(field.type, f"{kind.cls.__name__}.{field.name}")
        case inspect.UnionType():
            for one in kind.types:
                yield from numbers(one, where)
        case inspect.VarTupleType():
            yield from numbers(kind.item_type, where)
        case inspect.TupleType():
            for item_type in kind.item_types:
                yield from numbers(item_type, where)
        case inspect.DictType():
            yield from numbers(kind.value_type, where)


def test_every_number_of_every_record_has_bounds() -> None:
    found = dict(numbers(inspect.type_info(AnyRecord)))
    assert len(found) > 150
    for where, kind in found.items():
        assert isinstance(kind, (inspect.IntType, inspect.FloatType))
        if where in UNBOUNDED and isinstance(kind, inspect.FloatType):
            continue
        assert None not in (kind.ge, kind.le), where


def lines_of(records: list[AnyRecord]) -> list[bytes]:
    return [msgspec.json.encode(record) for record in records]


def decoded(lines: list[bytes]) -> tuple[list[AnyRecord], Losses]:
    decoder = TraceDecoder()
    found = decoder.feed(b"".join(line + b"\n" for line in lines))
    return found, decoder.losses


@pytest.mark.parametrize(
    ("tag", "path", "value"),
    [
        ("memory-plan", ("buffers", 0, "first"), 300_000_000),
        ("memory-plan", ("buffers", 0, "first"), -(10**12)),
        ("step", ("depth",), 400_000_000),
        ("start", ("pid",), 10**12),
        ("start", ("pid",), -1),
        ("speed", ("eager_ms",), 1e308),
        ("trial", ("noise",), -1e-6),
        ("speed", ("at",), -1e300),
        ("decided", ("pair", "score"), [1e308]),
        ("kernel", ("locations", 0, "line"), 2**31),
        ("kernel", ("step",), 2**63),
        ("graph", ("ops",), -1),
    ],
)
def test_a_number_out_of_bounds_damages_its_record(
    tag: str, path: tuple[str | int, ...], value: object
) -> None:
    rows = [json.loads(line) for line in lines_of(every_record())]
    row = next(
        row for row in rows if row["record"] == tag and (tag != "kernel" or row["locations"])
    )
    place = row
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    found, losses = decoded([json.dumps(one).encode() for one in rows])
    assert losses.damaged == 1
    assert len(found) == len(rows) - 1


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(reader, "LONGEST", 5000)
    return 5000


@pytest.mark.parametrize("chunk", [1, 7, 1000, 1 << 20])
def test_a_line_that_is_too_long_is_damaged(short_lines: int, chunk: int) -> None:
    before, after = Warned(message="a", at=1.0), Warned(message="b", at=2.0)
    long = msgspec.json.encode(Warned(message="x" * short_lines, at=3.0))
    data = b"\n".join([msgspec.json.encode(before), long, msgspec.json.encode(after), b""])
    decoder = TraceDecoder()
    found: list[AnyRecord] = []
    for start in range(0, len(data), chunk):
        found += decoder.feed(data[start : start + chunk])
    assert found == [before, after]
    assert decoder.losses.damaged == 1
    assert not decoder.losses.partial


def test_a_line_without_an_end_takes_no_memory() -> None:
    decoder = TraceDecoder()
    piece = b"x" * (1 << 20)
    tracemalloc.start()
    for _ in range(300):
        assert decoder.feed(piece) == []
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 20, "what was read is kept, or put together again at each piece"
    assert decoder.losses.damaged == 1
    assert decoder.losses.partial


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
def test_special_files_are_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.tcw"
    words = {"fifo": "a pipe", "socket": "a socket", "device": "a device", "folder": "a folder"}
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            monkeypatch.chdir(tmp_path)
            made.bind(path.name)  # a socket's name has at most 107 bytes
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    for opens in (read_trace, FileFollower, Recording.open):
        with pytest.raises(TraceError, match=f"{words[kind]}.*, not a file"):
            opens(path)
    for verb in ("open", "repro", "serve", "explain"):
        command = [sys.executable, "-P", os.fspath(DOOR), verb, os.fspath(path)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (told.returncode, told.stdout) == (2, ""), verb
        assert words[kind] in told.stderr, verb


def whole(records: list[AnyRecord] | None = None) -> list[AnyRecord]:
    """The block's trace with the count of its lines at the end."""
    kept = [record for record in records or block_trace() if not isinstance(record, End)]
    return [*kept, End(status="ok", seconds=1.0, lines=len(kept), at=99.0)]


def words_of(lines: list[bytes], tmp_path: Path) -> tuple[str, Recording]:
    path = tmp_path / "run.tcw"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    recording = Recording.open(path)
    return to_text(explain(recording), 100), recording


def test_a_whole_trace_has_no_losses(tmp_path: Path) -> None:
    text, recording = words_of(lines_of(whole()), tmp_path)
    assert not recording.losses
    assert losses_sentences(recording) == []
    assert "missing" not in text


def test_missing_records_are_told(tmp_path: Path) -> None:
    lines = lines_of(whole())
    del lines[100:500]
    text, recording = words_of(lines, tmp_path)
    assert recording.losses.missing == 400
    total = len(whole()) - 1
    assert f"this trace has {total - 400:,} of {total:,} records: 400 are missing" in text
    assert losses_short(recording.losses, 0) == "400 missing"


def test_doubled_records_are_told_and_counted_once(tmp_path: Path) -> None:
    lines = lines_of(whole())
    first, _ = words_of(lines, tmp_path)
    text, recording = words_of([line for line in lines for _ in range(2)], tmp_path)
    assert recording.losses.doubled == len(lines)
    assert recording.losses.missing == recording.losses.added == 0
    said = f"left out of this trace: {len(lines):,} records that are in it twice"
    assert said in text
    kept = [line for line in text.split("\n") if said not in line]
    assert kept == first.split("\n")


def test_doubled_and_missing_records_do_not_make_up_for_each_other(tmp_path: Path) -> None:
    lines = lines_of(whole())
    lines[100:200] = lines[300:400]
    _, recording = words_of(lines, tmp_path)
    assert (recording.losses.doubled, recording.losses.missing) == (100, 100)


def test_kernels_under_one_id_are_counted_once(tmp_path: Path) -> None:
    """Copies with another time are no equal lines."""
    records = whole()
    kernels = [record for record in records if isinstance(record, Kernel)]
    copies = [structs.replace(one, at=one.at + 0.5) for one in kernels]
    _, recording = words_of(lines_of([*records[:-1], *copies, records[-1]]), tmp_path)
    assert recording.all(Kernel) == kernels
    assert recording.losses.doubled == len(copies)


def test_records_that_nobody_wrote_are_told(tmp_path: Path) -> None:
    records = whole()
    records[50:50] = [Warned(message=f"{number}", at=1.0) for number in range(3)]
    text, recording = words_of(lines_of(records), tmp_path)
    assert recording.losses.added == 3
    assert "this trace has 3 records that its recording did not write" in text


@pytest.mark.parametrize("ended", [True, False])
def test_two_traces_in_one_file_are_not_added_up(ended: bool, tmp_path: Path) -> None:
    first = whole() if ended else whole()[:-1]
    second = [structs.replace(one, at=one.at + 0.25) for one in whole()]
    second[0] = structs.replace(second[0], time=1_800_000_000.0, pid=99)
    _, recording = words_of(lines_of([*first, *second]), tmp_path)
    assert recording.records == first
    assert recording.losses.foreign == len(second)
    assert losses_sentences(recording) == [
        f"left out of this trace: {len(second):,} records of another recording"
    ]


def test_a_worker_that_is_started_again_for_a_run_is_no_other_recording() -> None:
    start = structs.replace(block_trace()[0], at=1.0)
    assert isinstance(start, Start)
    settings = Settings(file="a.py")
    records: list[AnyRecord] = [
        start,
        Run(number=1, settings=settings, at=2.0),
        Progress(stage="load", activity="x", at=3.0),
        Run(number=2, settings=settings, at=4.0),
        Note(on="src:a.py:1", text="t", at=5.0),
        structs.replace(start, time=start.time + 60, at=6.0),
        kernel(at=7.0),
        Run(number=3, settings=settings, at=8.0),
        kernel(at=9.0),
    ]
    found, losses = decoded(lines_of(records))
    assert found == records
    assert not losses


def test_notes_behind_the_end_are_read() -> None:
    note = Note(on="src:a.py:1", text="t", at=100.0)
    gone = structs.replace(note, text="")
    records = [*whole(), note, gone, note]
    found, losses = decoded(lines_of(records))
    assert found == records, "a note is written again with the same words"
    assert not losses


def test_the_front_end_counts_what_it_and_its_workers_wrote(tmp_path: Path) -> None:
    file = TraceFile(tmp_path / "run.tcw", lambda record: None)
    os.write(file.descriptor, msgspec.json.encode(Warned(message="of a worker", at=1.0)) + b"\n")
    file.emit(Warned(message="of the front end"))
    os.write(file.descriptor, b'{"record":"cut o')
    file.close_partial_line()
    assert file.lines() == 3
    file.emit(End(status="ok", seconds=1.0, lines=file.lines()))
    file.close()
    losses = read_trace(tmp_path / "run.tcw").losses
    assert (losses.damaged, losses.missing, losses.added) == (1, 0, 0)
    nowhere = TraceFile(None, lambda record: None)
    assert nowhere.lines() == 0
