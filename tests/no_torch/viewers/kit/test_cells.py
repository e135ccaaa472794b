"""Text cut and wrapped to a width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tcw.viewers.kit.cells import cut, keep_end, wrap


@given(st.text(max_size=40), st.integers(0, 30))
def test_cuts_fit_and_show_that_they_cut(text: str, width: int) -> None:
    for done, mark in ((cut(text, width), "›"), (keep_end(text, width), "…")):
        assert cell_len(done) <= width
        assert done == text or mark in done or not width


def test_cuts() -> None:
    assert cut("scores = q @ k", 9) == "scores =›"
    assert keep_end("layers.0.ln1.weight", 11) == "…ln1.weight"


@given(st.text(max_size=60), st.integers(8, 30))
def test_wrapped_prose_fits_and_loses_no_word(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert all(cell_len(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(" ".join(wrap(text, 10_000)).split())


def test_a_long_word_is_broken_at_the_end_of_the_row() -> None:
    assert wrap("a bbbbbbbbbbbb c", 8) == ["a", "bbbbbbbb", "bbbb c"]
