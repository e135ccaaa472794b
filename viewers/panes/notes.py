"""Notes: all of a trace, and the marks where they are attached."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Note
from tcw.viewers.kit.cells import cut, wrap
from tcw.viewers.kit.spans import Span, width_of
from tcw.viewers.panes.rows import BLANK, Content, Row, Rows, empty, text_row
from tcw.viewers.panes.targets import ToNote, ToPair, ToThing, ToView
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain, plain_lines
from tcw.viewers.teaching.notes import DECISION, notes_of, on_decision

NAME = "notes"
"""Of the pane that lists them all."""
LEAST = 12
"""Minimum cells of a note that are shown beside a row."""


def thing_of(row: Row) -> str:
    """What a note on a row would be attached to; "" if the row shows nothing of the trace."""
    if row.decision:
        return on_decision(row.decision)
    return row.ref or row.selects


def thing_words(view: View, on: str) -> str:
    """`block.py:19`, `decision exp + sum_1`, another ref as it is."""
    if on.startswith(DECISION):
        return f"decision {on.removeprefix(DECISION)}"
    if refs.kind(on) == "src":
        return view.derived.names.place(*refs.split_source(on))
    return on


def known(view: View) -> dict[str, Note]:
    """The notes of the whole trace: they belong to no place in time."""
    return notes_of(view.derived.trace, view.run)


def marked(view: View, content: Content, width: int) -> Content:
    """The same rows, with `"` and the beginning of its note on each that has one."""
    notes = known(view)
    if not notes or content.name == NAME:
        return content

    def mark(row: Row) -> Row:
        note = notes.get(thing_of(row)) or notes.get(row.ref)
        if note is None:
            return row
        room = width - width_of((*row.gutter, *row.body, *row.right)) - 4
        words = plain(note.text.split("\n")[0])
        spans: list[Span] = [('"', "warn")]
        if room >= LEAST:
            spans.append((" " + cut(words, room), "warn"))
        return replace(row, right=(*row.right, (" ", "text"), *spans, (" ", "text")))

    rows = content.rows
    if isinstance(rows, Rows):
        return replace(
            content, rows=Rows(len(rows), lambda index: mark(rows[index]), rows.refs, rows.keys)
        )
    return replace(content, rows=[mark(row) for row in rows])


def content(view: View, width: int) -> Content:
    """Every note, with what it is on; `⏎` goes there."""
    notes = known(view)
    if not notes:
        return Content(NAME, rows=empty(width, "no notes", "m adds one to what is selected"))
    rows: list[Row] = []
    for on, note in notes.items():
        decision = on.removeprefix(DECISION) if on.startswith(DECISION) else ""
        rows.append(
            text_row(
                ('" ', "warn"),
                (thing_words(view, on), "strong"),
                ref="" if decision else on,
                at=ToPair(decision) if decision else ToNote(on),
                opens=ToView("fusion") if decision else ToThing(on),
                copies=note.text,
                decision=decision,
            )
        )
        for line in plain_lines(note.text):
            rows += [text_row(f"  {part}") for part in wrap(line, width - 4)]
        rows.append(BLANK)
    return Content(NAME, right=((str(len(notes)), "dim"),), rows=rows)
