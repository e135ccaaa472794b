"""Writing and reading: what is written comes back; what is damaged is skipped and counted."""

from __future__ import annotations

import json
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.compiler.trace.reader import FileFollower, TraceDecoder, TraceError, read_trace
from tcw.compiler.trace.records import AnyRecord, End, Settings, Start, Text, Warned
from tcw.compiler.trace.writer import TraceWriter, clean, text_hash, write_whole
from tests.block_trace import block_trace
from tests.no_torch import schemas
from tests.no_torch.trace.strategies import recordings, records
from tests.no_torch.traces import opening


def written(found: list[AnyRecord]) -> tuple[bytes, list[AnyRecord]]:
    """The bytes of a trace, and its records as they were stamped."""
    lines: list[bytes] = []
    writer = TraceWriter(lines.append)
    for record in found:
        writer.emit(record)
    return b"".join(lines), found


@given(recordings(), st.lists(st.integers(1, 200), max_size=8))
@settings(max_examples=150)
def test_any_records_come_back_however_the_bytes_are_cut(
    found: list[AnyRecord], cuts: list[int]
) -> None:
    data, expected = written(found)
    decoder = TraceDecoder()
    got: list[AnyRecord] = []
    for size in cuts:
        got += decoder.feed(data[:size])
        data = data[size:]
    got += decoder.feed(data)
    assert got == expected
    assert decoder.losses.total == 0
    assert not decoder.losses.partial


@given(recordings(1, 4), st.floats(0, 1))
@settings(max_examples=100)
def test_a_killed_writer_loses_at_most_its_last_record(found: list[AnyRecord], part: float) -> None:
    whole, expected = written(found)
    kept = round(part * len(whole))
    decoder = TraceDecoder()
    got = decoder.feed(whole[:kept])
    assert got == expected[: whole[:kept].count(b"\n")]
    assert decoder.losses.total == 0
    assert decoder.losses.partial == (not whole[:kept].endswith(b"\n") and kept > 0)


GARBAGE = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
    st.just(b"[" * 5000),
    st.just(b'{"record": "graph", "id": 7}'),
    st.just(b'{"record": "end"'),
    st.just(b'"text"'),
    st.just(b"null"),
)


@given(recordings(0, 4), st.lists(GARBAGE, max_size=4), st.randoms())
@settings(max_examples=100)
def test_damaged_lines_are_skipped_and_counted(
    found: list[AnyRecord], garbage: list[bytes], random: Any
) -> None:
    data, expected = written(found)
    lines = [line for line in data.split(b"\n") if line]
    damage = [line for line in garbage if line.strip()]
    for line in damage:
        lines.insert(random.randint(0, len(lines)), line)
    decoder = TraceDecoder()
    got = decoder.feed(b"".join(line + b"\n" for line in lines))
    assert got == expected
    assert decoder.losses.total == len(damage)


def test_unknown_records_are_counted_by_their_tag() -> None:
    decoder = TraceDecoder()
    lines = (
        b'{"record":"hologram","x":1}\n{"record":"hologram"}\n{"record":"warned","message":"a"}\n'
    )
    assert decoder.feed(lines) == [Warned(message="a")]
    assert decoder.losses.unknown == {"hologram": 2}
    assert decoder.losses.damaged == 0


def test_unknown_fields_of_a_newer_tool_are_ignored() -> None:
    decoder = TraceDecoder()
    assert decoder.feed(b'{"record":"warned","message":"a","colour":"red"}\n') == [
        Warned(message="a")
    ]


def test_a_newer_schema_is_refused_in_words() -> None:
    start = msgspec.structs.replace(opening()[0], schema_version=99, tool_version="9.9")
    data, _ = written([start])
    with pytest.raises(TraceError, match=r"schema 99 \(tcw 9\.9 wrote it\).*newer tcw"):
        TraceDecoder().feed(data)


def test_a_file_that_is_no_trace(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(b"hello\nworld\n\xff\xfe\n")
    with pytest.raises(TraceError, match="is not a tcw trace"):
        read_trace(file)


def test_texts_are_stored_once() -> None:
    lines: list[bytes] = []
    writer = TraceWriter(lines.append)
    one, two, three = writer.text("a" * 1000), writer.text("a" * 1000), writer.text("b")
    assert one == two != three
    assert len(lines) == 2
    assert writer.text("") == ""
    assert len(lines) == 2


@given(st.text(max_size=30))
def test_lone_surrogates_do_not_break_a_line(body: str) -> None:
    """Python strings may hold what UTF-8 cannot carry."""
    lines: list[bytes] = []
    writer = TraceWriter(lines.append)
    key = writer.text(body + "\ud800")
    writer.emit(Warned(message=body + "\udfff"))
    text, warned = TraceDecoder().feed(b"".join(lines))
    assert isinstance(text, Text)
    assert text.hash == key == text_hash(text.body)
    assert isinstance(warned, Warned)
    assert warned.message == clean(body + "\udfff")


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    file = tmp_path / "run.tcw"
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    writer = TraceWriter(partial(write_whole, descriptor))

    def write(name: str) -> None:
        for number in range(200):
            writer.emit(Warned(message=f"{name} {number} " + "x" * (number % 50)))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(descriptor)
    trace = read_trace(file)
    assert len(trace.records) == writer.records == 800
    assert trace.losses.total == 0


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "run.tcw"
    data, expected = written(block_trace()[:40])
    file.write_bytes(b"")
    follower, decoder = FileFollower(file), TraceDecoder()
    got: list[AnyRecord] = []
    with file.open("ab") as stream:
        for start in range(0, len(data), 997):
            stream.write(data[start : start + 997])
            stream.flush()
            got += decoder.feed(follower.read())
    follower.close()
    assert got == expected


def test_completeness(tmp_path: Path) -> None:
    whole, _ = written([*opening(), End(status="ok", seconds=1.0)])
    file = tmp_path / "run.tcw"
    file.write_bytes(whole)
    assert read_trace(file).complete
    file.write_bytes(whole[:-10])
    trace = read_trace(file)
    assert not trace.complete
    assert trace.losses.partial
    assert len(trace.records) == 4


@given(records())
@settings(max_examples=150)
def test_every_line_fits_the_published_schema(record: AnyRecord) -> None:
    data, _ = written([record])
    VALIDATOR.validate(json.loads(data))


VALIDATOR = jsonschema.Draft202012Validator(schemas.TRACE)


def test_the_start_record_says_what_was_asked() -> None:
    asked = Settings(file="a.py", inputs=("f32[8]",), dynamic=False, timeout=3.5)
    data, _ = written([msgspec.structs.replace(opening()[0], settings=asked)])
    (start,) = TraceDecoder().feed(data)
    assert isinstance(start, Start)
    assert start.settings == asked
