"""A reader's notes: what each is attached to, and how one is added to a finished trace."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tcw.compiler.trace.output_file import SAFELY, TRACE, check_open, refuse_special
from tcw.compiler.trace.records import Note
from tcw.compiler.trace.writer import clean
from tcw.viewers.recording import Recording

LONGEST = 10_000
"""Maximum characters of a note."""
DECISION = "decision:"


def on_decision(id: str) -> str:
    return DECISION + id


def notes_of(recording: Recording, run: int = 0) -> dict[str, Note]:
    """What a note is on -> the latest note on it, unless that is empty. Notes of other runs are
    left out; a note of no run belongs to all."""
    found: dict[str, Note] = {}
    for note in recording.all(Note):
        if note.run and run and note.run != run:
            continue
        found.pop(note.on, None)
        if note.text:
            found[note.on] = note
    return found


def make(on: str, words: str, run: int = 0, at: float = 0.0) -> Note:
    """A note as it is stored: at most `LONGEST` characters, all of which UTF-8 can encode. `at`:
    the last time in the trace, so that time never goes back."""
    lines = words.replace("\r\n", "\n").replace("\r", "\n")
    return Note(on=on, text=clean(lines.strip()[:LONGEST]), run=run, at=at)


def append(path: Path, note: Note) -> None:
    """Append a note to a trace, with one write of a whole line.

    Others may append notes at the same time. Raises OSError if the file cannot be written, and
    `OutputRefused` if it is not a trace or is a link.
    """
    line = msgspec.json.encode(note) + b"\n"
    refuse_special(os.lstat(path).st_mode)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | SAFELY)
    try:
        check_open(descriptor, TRACE)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        view = memoryview(line)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)
