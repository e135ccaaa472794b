from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tcw.viewers.kit.theme import THEMES
from tcw.viewers.panes.rows import Row
from tcw.workbench.tui.paint import exactly, paint

words = st.text(max_size=30)
lines = st.lists(st.tuples(words, st.sampled_from(["text", "dim", "bad"])), max_size=4).map(tuple)


@given(lines, lines, lines, st.integers(1, 60), st.integers(0, 40), st.sampled_from(list(THEMES)))
def test_a_row_fills_its_width_and_only_prints(gutter, body, right, width, left, name) -> None:  # type: ignore[no-untyped-def]
    theme = THEMES[name]
    row = Row(gutter=gutter, body=body, right=right)
    segments = exactly(paint(row, width, left, theme, "exact"), width, theme)
    text = "".join(segment.text for segment in segments)
    assert cell_len(text) == width
    assert text.isprintable()


def test_what_is_cut_is_marked() -> None:
    def shown(width: int, left: int = 0) -> str:
        row = Row(
            gutter=(("12 ", "dim"),), body=(("a long line", "text"),), right=(("5 µs", "dim"),)
        )
        return "".join(s.text for s in paint(row, width, left, THEMES["dark"]))

    assert shown(20) == "12 a long line  5 µs"
    assert shown(17) == "12 a long l› 5 µs"
    assert shown(18, 4) == "12 ‹g line    5 µs"


def test_wide_characters_are_never_halved() -> None:
    row = Row(body=(("你好吗", "text"),))
    text = "".join(s.text for s in paint(row, 4, 0, THEMES["dark"]))
    assert text == "你 ›"


def test_dim_text_is_promoted_on_the_selection() -> None:
    for name in ("dark", "light"):
        theme = THEMES[name]  # type: ignore[index]
        segment = paint(Row(body=(("x", "dim"),)), 1, 0, theme, "selected")[0]
        assert segment.style is not None
        assert segment.style.color == theme.base("").color
