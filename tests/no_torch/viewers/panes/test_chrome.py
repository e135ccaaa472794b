from __future__ import annotations

import pytest

from compiler.trace import refs
from tests.block_trace import FILE, large_trace
from tests.no_torch.viewers.panes.conftest import view_of
from viewers.panes import chrome
from viewers.panes.rows import width_of
from viewers.panes.view import View


def words(line) -> str:  # type: ignore[no-untyped-def]
    return "".join(span[0] for span in line)


def test_a_narrow_header_drops_settings_then_counts_never_the_state(block: View) -> None:
    assert "train · inductor · cpu" in words(chrome.header(block, "replay", 120))
    middle = words(chrome.header(block, "replay", 80))
    assert "inductor" not in middle
    assert "✗2 breaks" in middle
    narrow = words(chrome.header(block, "replay", 40))
    assert "breaks" not in narrow
    assert narrow.endswith("↺ replay")


@pytest.mark.parametrize("state", chrome.STATES)
def test_every_state_has_a_glyph_and_a_word(state: chrome.State, block: View) -> None:
    glyph, word = chrome.STATES[state][0].split()
    assert len(glyph) == 1
    assert word in words(chrome.header(block, state, 80))


@pytest.mark.parametrize("width", [100, 120, 200])
def test_the_timeline_fits_and_clicks_find_the_segment(width: int, block: View) -> None:
    above, below = chrome.timeline(block, width, 12)
    assert width_of(above) <= width
    assert width_of(below) <= width - 12
    assert words(above).count("✗") == 5
    assert words(above).count("↻") == 4
    assert chrome.at(block, width, words(above).index("▼")) == "0/0"
    assert chrome.at(block, width, width_of(above) - 3) == "2/1"


def test_a_timeline_of_too_many_compiles_shows_those_around_the_present_one() -> None:
    view = view_of(large_trace(8000), "20/0")
    view.compile_id = list(view.facts.pieces)[-1]
    above, _ = chrome.timeline(view, 100)
    assert "▼" in words(above)
    assert width_of(above) <= 100


def test_what_is_selected_and_what_it_is_linked_to(block: View) -> None:
    block.select(refs.source(FILE, 19))
    title, linked, inferred = (row.text for row in chrome.selection(block, 120))
    assert title.startswith("src:block.py:19")
    assert linked == "18 nodes → 1 kernel k4 softmax"
    assert inferred == (
        "≈18  line inferred: torch recorded none for 14 nodes, made by pass_pattern_1"
    )


def test_a_line_that_no_graph_has_says_why(block: View) -> None:
    block.select(refs.source(FILE, 24))
    assert "left to Python: print() GB0059" in chrome.selection(block, 120)[1].text
    block.select(refs.source(FILE, 2))
    assert "no graph has a node of it" in chrome.selection(block, 120)[1].text
