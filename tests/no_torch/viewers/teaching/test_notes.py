from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import AnyRecord, End, Note
from tcw.viewers.panes import fusion, notes, source
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import View
from tcw.viewers.recording import Recording
from tcw.viewers.teaching.notes import LONGEST, append, make, notes_of, on_decision
from tests.no_torch import traces
from tests.no_torch.asking import ID
from tests.no_torch.viewers.panes.conftest import view_of

LINE = f"src:{traces.FILE}:6"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.tcw"
    records = traces.clean()
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return path


def test_a_note_is_read_back_behind_the_end_of_a_trace(trace: Path) -> None:
    words = 'why?\n\ttwo passes "here" \x1b[31m\u202e'
    append(trace, make(LINE, words, at=12.0))
    append(trace, make(LINE, words + " more", at=12.0))
    found = read_trace(trace)
    assert found.complete
    assert not found.losses.total
    assert isinstance(found.records[-3], End)
    assert notes_of(Recording(found.records))[LINE].text == words + " more"


def test_many_notes_leave_a_trace_complete(trace: Path) -> None:
    for number in range(40):
        append(trace, make(f"{LINE}{number}", "words"))
    assert read_trace(trace).complete


def test_an_empty_note_takes_it_away(trace: Path) -> None:
    append(trace, make(LINE, "words"))
    append(trace, make(LINE, "  \n"))
    assert notes_of(Recording.open(trace)) == {}


def test_a_line_that_was_cut_off_stays_a_line_of_its_own(trace: Path) -> None:
    """A killed recording ends in the middle of a line: the note is not lost with it."""
    with trace.open("ab") as stream:
        stream.write(b'{"record":"kern')
    append(trace, make(LINE, "words"))
    found = read_trace(trace)
    assert found.losses.damaged == 1
    assert notes_of(Recording(found.records))[LINE].text == "words"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("link", "symbolic link"),
        ("fifo", "a pipe"),
        ("model", "is not a trace"),
        ("/dev/null", "a device"),
        ("gone", "No such file"),
    ],
)
def test_a_note_goes_into_a_trace_alone(what: str, why: str, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / what
    before = trace.read_bytes()
    if what == "link":
        path.symlink_to(trace)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "model":
        path.write_text("import torch\n")
    with pytest.raises(OSError, match=why):
        append(path, make(LINE, "words"))
    assert trace.read_bytes() == before
    assert what != "model" or path.read_text() == "import torch\n"


def test_notes_of_two_readers_do_not_mix(trace: Path) -> None:
    def write(name: str) -> None:
        for number in range(50):
            append(trace, make(f"{LINE}{name}{number}", name * 2000))

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_trace(trace)
    assert not found.losses.total
    assert len(notes_of(Recording(found.records))) == 100


def test_a_file_that_cannot_be_written_says_so(trace: Path) -> None:
    with pytest.raises(OSError, match="it is a folder"):
        append(trace.parent, make(LINE, "words"))
    with pytest.raises(OSError, match="No such file"):
        append(trace.parent / "gone" / "run.tcw", make(LINE, "words"))
    assert not os.path.exists(trace.parent / "gone")


@given(st.text(max_size=200))
def test_any_words_come_back(words: str) -> None:
    note = make(LINE, words)
    again = msgspec.json.decode(msgspec.json.encode(note), type=Note)
    assert again == note
    assert again.text.strip() == again.text
    assert "\r" not in again.text


def test_a_note_has_a_longest_length() -> None:
    assert len(make(LINE, "x" * 20_000).text) == LONGEST


def test_a_note_of_another_run_is_not_shown() -> None:
    on = on_decision(ID)
    records = [Note(on=on, text="first", run=1), Note(on=on, text="second", run=2)]
    assert notes_of(Recording(records), 1)[on].text == "first"
    assert notes_of(Recording(records), 2)[on].text == "second"
    assert notes_of(Recording([Note(on=on, text="both")]), 2)[on].text == "both"


def hostile() -> str:
    return "\x1b[31m[bold]x[/nope]\u202e\u200b\n" + "w" * 9_000


def view_with(block_records: list[AnyRecord], *found: Note) -> View:
    return view_of([*block_records, *found])


def test_notes_stand_beside_what_they_are_on(block_records: list[AnyRecord]) -> None:
    on = "src:/home/ada/block.py:19"
    view = view_with(block_records, Note(on=on, text="the slow one\nsecond line"))
    content = notes.marked(view, source.content(view, 80), 80)
    rows = [row for row in content.rows if any('"' in words for words, _ in row.right)]
    assert [row.ref for row in rows] == [on]
    assert rows[0].right[-2][0].strip() == "the slow one"
    assert content.refs == source.content(view, 80).refs


def test_a_note_on_a_decision_stands_at_its_pair(block_records: list[AnyRecord]) -> None:
    view = view_with(block_records, Note(on=on_decision(ID), text="ask me"))
    rows = notes.marked(view, fusion.decisions(view, 100), 140).rows
    assert [row.key for row in rows if "ask me" in row.text] == [f"pair:{ID}"]


def test_the_list_of_notes_is_safe_and_whole(block_records: list[AnyRecord]) -> None:
    view = view_with(block_records, Note(on="src:/home/ada/block.py:19", text=hostile()))
    rows = notes.content(view, 60).rows
    text = "\n".join(row.text for row in rows)
    assert text.replace("\n", "").isprintable()
    assert "block.py:19" in text
    assert text.count("w") >= 9_000
    assert all(len(row.text) <= 60 for row in rows)


def test_without_notes_a_pane_is_as_it_was(block: View) -> None:
    content = source.content(block, 80)
    assert notes.marked(block, content, 80) is content
    assert "m adds one" in "".join(row.text for row in notes.content(block, 80).rows)


def test_what_a_note_goes_on() -> None:
    assert notes.thing_of(Row(decision=ID, ref="fx:a/b")) == f"decision:{ID}"
    assert notes.thing_of(Row(ref="fx:a/b")) == "fx:a/b"
    assert notes.thing_of(Row(selects="src:a:1")) == "src:a:1"
    assert notes.thing_of(Row()) == ""
