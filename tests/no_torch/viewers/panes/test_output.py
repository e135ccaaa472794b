from __future__ import annotations

from tcw.compiler.trace.records import AnyRecord, End, Failure, Output, Text
from tcw.viewers.panes import output
from tcw.viewers.panes.view import View
from tests.no_torch.viewers.panes.conftest import view_of

TRACE = 'Traceback (most recent call last):\n  File "m.py", line 3, in forward\nValueError: no\n'


def texts(view: View) -> list[str]:
    return [row.text for row in output.content(view, 80).rows]


def failed(start: AnyRecord, *printed: AnyRecord) -> View:
    failure = Failure(doing="call 1", type="ValueError", message="no", traceback="t1")
    traceback = Text(hash="t1", body=TRACE)
    return view_of([start, *printed, traceback, failure, End(status="failed", seconds=1.0)], "")


def test_a_failure_stands_below_what_was_printed_with_its_traceback(
    block_records: list[AnyRecord],
) -> None:
    view = failed(block_records[0], Output(stream="stderr", text="careful\n"))
    assert texts(view) == [
        "! careful",
        "✗ failed in call 1",
        *(f"  {x}" for x in TRACE.splitlines()),
    ]
    assert output.content(view, 80).start == "output:1", "the failure is what is looked for"


def test_a_program_that_fails_without_a_word_has_its_traceback(
    block_records: list[AnyRecord],
) -> None:
    assert texts(failed(block_records[0]))[0] == "✗ failed in call 1"
