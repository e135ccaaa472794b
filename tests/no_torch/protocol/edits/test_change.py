"""Changes of whole lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.protocol.edits import EditError, changed
from tcw.compiler.trace.records import SourceChange

TEXT = "a = 1\nb = 2\nc = 3\n"


def change(line: int, end: int, text: str) -> SourceChange:
    return SourceChange(file="/m.py", line=line, end_line=end, text=text)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([change(2, 2, "b = 5")], "a = 1\nb = 5\nc = 3\n"),
        ([change(2, 1, "x = 0\ny = 0")], "a = 1\nx = 0\ny = 0\nb = 2\nc = 3\n"),
        ([change(1, 2, "")], "c = 3\n"),
        ([change(3, 3, "c = 4"), change(1, 1, "a = 0\nz = 0")], "a = 0\nz = 0\nb = 2\nc = 4\n"),
        ([change(2, 1, "x = 0"), change(2, 2, "b = 5")], "a = 1\nx = 0\nb = 5\nc = 3\n"),
    ],
)
def test_lines_are_replaced_by_their_old_numbers(
    changes: list[SourceChange], expected: str
) -> None:
    assert changed(TEXT, changes) == expected
    assert changed(TEXT, changes[::-1]) == expected


def test_line_ends_stay() -> None:
    assert changed("a = 1\r\nb = 2\r\n", [change(1, 1, "a = 3")]) == "a = 3\r\nb = 2\r\n"


@pytest.mark.parametrize(
    "changes",
    [
        [change(1, 2, "x = 1"), change(2, 3, "y = 1")],
        [change(9, 9, "x = 1")],
        [change(2, 2, "def f(:")],
    ],
)
def test_what_cannot_be_applied_is_refused(changes: list[SourceChange]) -> None:
    with pytest.raises(EditError):
        changed(TEXT, changes)


@given(st.lists(st.sampled_from(["a = 1", "b = 2", "", "# c"]), min_size=1, max_size=8), st.data())
def test_any_line_can_be_replaced_and_the_rest_stays(lines: list[str], data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(lines)))
    made = changed("\n".join(lines), [change(number, number, "new = 1")]).split("\n")
    assert made == [*lines[: number - 1], "new = 1", *lines[number:]]
