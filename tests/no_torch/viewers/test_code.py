"""Carets stand under what is meant, whatever the line holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tcw.compiler.trace.records import Source, Text
from tcw.viewers.file_names import FileNames
from tcw.viewers.recording import Recording
from tcw.viewers.summary.place import Place
from tcw.viewers.tables.findings import place_lines, window
from tcw.viewers.text.lines import to_text


def shown(text: str, marked: str, width: int = 100) -> list[str]:
    start = text.index(marked)
    place = Place("a.py", 7, text, start, start + len(marked))
    return to_text(place_lines(place, FileNames(), 2, width), width).splitlines()


def under(rows: list[str]) -> str:
    """What the carets stand under, by cells."""
    code, carets = rows
    first = len(carets) - len(carets.lstrip())
    found, at = "", 0
    for character in code:
        if first <= at < len(carets):
            found += character
        at += cell_len(character)
    return found


def test_carets() -> None:
    rows = shown("        if h.abs().max() > 8:", "h.abs().max() > 8")
    assert rows == ["  a.py:7  if h.abs().max() > 8:", "             ^^^^^^^^^^^^^^^^^"]


def test_wide_characters_and_tabs() -> None:
    assert under(shown("\tmaß = '中文'; gain(x)", "gain(x)")) == "gain(x)"
    assert under(shown("a\t=\tgain(x)", "gain(x)")) == "gain(x)"
    assert under(shown("s = '\x1b'; gain(x)", "gain(x)")) == "gain(x)"


def test_a_range_past_the_width_is_brought_into_view() -> None:
    rows = shown("y = " + " + ".join(f"x{n}" for n in range(80)) + " + gain(x) + 1", "gain(x)", 80)
    assert under(rows) == "gain(x)"
    assert "…" in rows[0]
    assert all(cell_len(row) <= 80 for row in rows)


def test_a_long_file_name_does_not_cut_the_code_away() -> None:
    text = "    is_global_attn = is_index_global_attn.flatten().any().item()"
    place = Place("transformers/models/longformer/modeling_longformer.py", 1175, text, 21, 63)
    rows = to_text(place_lines(place, FileNames(), 2, 80), 80).splitlines()
    assert rows[0].strip().endswith("modeling_longformer.py:1175")
    assert under(rows[1:]) == "is_index_global_attn.flatten().any().item("


def test_the_whole_statement_needs_no_carets() -> None:
    assert len(shown("    return f(x)", "return f(x)")) == 1


def test_no_text_is_no_fault() -> None:
    place = Place("a.py", 7)
    assert to_text(place_lines(place, FileNames(), 2, 80), 80) == "  a.py:7\n"


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60), st.integers(20, 80))
def test_any_range(text: str, start: int, end: int, width: int) -> None:
    code, first, last = window(Place("a.py", 1, text, start, end), width)
    assert cell_len(code) <= width
    if first is not None and last is not None and first < last:
        assert first >= 0
        assert last <= cell_len(code)


def test_lines_are_counted_as_python_counts_them() -> None:
    """A form feed stands on a line of its own in many a source; it ends no line."""
    body = "one = 1\n\x0c\ntwo = '\u2028'\r\nthree = 3\rfour = 4\n"
    recording = Recording([Text(hash="h", body=body), Source(file="a.py", text="h")])
    assert recording.source("a.py") == [
        "one = 1",
        "\x0c",
        "two = '\u2028'",
        "three = 3",
        "four = 4",
    ]
    assert recording.line("a.py", 4) == "three = 3"
    assert recording.line("a.py", 6) == ""


def test_where_there_is_little_room_the_line_number_stays() -> None:
    place = Place(
        file="/usr/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py",
        line=429, text="input_ids: torch.LongTensor | None = None,",
    )  # fmt: skip
    first = place_lines(place, FileNames(), 10, 40, "line ")[0]
    assert first.text.endswith("llama.py:429")
    assert cell_len(first.text) <= 40
