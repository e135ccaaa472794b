"""Wrapping and cutting keep every word, every role and the width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tcw.viewers.kit.lines import fitted, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import table
from tcw.viewers.text.lines import to_text

ROLES: list[Role] = ["text", "dim", "bad"]
PIECES = st.lists(
    st.tuples(st.text(st.sampled_from("ab 中é"), max_size=12), st.sampled_from(ROLES)), max_size=6
)


@given(PIECES, st.integers(0, 6), st.integers(20, 40))
def test_wrapping(pieces: list[tuple[str, Role]], hang: int, width: int) -> None:
    one = line(*pieces, hang=hang)
    rows = fitted([one], width)
    assert all(cell_len(row.text.rstrip()) <= width for row in rows)
    assert "".join(row.text for row in rows).split() == one.text.split() or len(rows) > 1
    squeezed = "".join("".join(row.text for row in rows).split())
    assert squeezed == "".join(one.text.split())


@given(PIECES, st.integers(20, 40))
def test_cutting(pieces: list[tuple[str, Role]], width: int) -> None:
    one = line(*pieces, fixed=True)
    (row,) = fitted([one], width)
    assert cell_len(row.text.rstrip()) <= width
    if row.text != one.text:
        assert row.text.endswith("›")
        assert one.text.startswith(row.text[:-1])


def test_a_word_longer_than_the_line_is_broken() -> None:
    assert to_text([line("a " + "b" * 25, hang=2)], 20) == f"a {'b' * 18}\n  {'b' * 7}\n"


def test_words_go_over_spans() -> None:
    one = line(("torch.", "dim"), ("compile", "bad"), " works well here", hang=1)
    assert to_text([one], 20) == "torch.compile works\n well here\n"


def test_table_shrinks_only_what_may_shrink() -> None:
    rows = [["k4", "softmax", "layers.0.attention.output.dense", "12.5 ms"]]
    (row,) = table(rows, "lfer", 40)
    assert row.text == "k4  softmax  …ention.output.dense  12.5 ms"[:40] or cell_len(row.text) <= 40
    assert row.text.endswith("12.5 ms")
    assert "…" in row.text


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=4))
def test_table_rows_fit(rows: list[tuple[str, str]]) -> None:
    for row in table(rows, "fe", 30, indent=2):
        assert cell_len(row.text) <= 30


def test_columns_go_where_there_is_no_room() -> None:
    rows = [["inductor", "2.26 ms", "2.12 ms", "1.07x"]]

    def shown(width: int) -> list[str]:
        (row,) = table(rows, "lrrr", width, drop=(1, 2))
        return row.text.split("  ")

    assert shown(40) == rows[0]
    assert shown(30) == ["inductor", "2.12 ms", "1.07x"]
    assert shown(20) == ["inductor", "1.07x"]
