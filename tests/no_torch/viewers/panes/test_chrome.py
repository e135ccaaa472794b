from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import CallStart, NotInLog, Speed, Start
from tcw.viewers.panes import chrome
from tcw.viewers.panes.view import View
from tests.block_capture import FILE
from tests.block_trace import block_trace
from tests.no_torch.viewers.panes.conftest import view_of


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


def test_what_compiles_itself_is_not_given_the_settings_of_a_model() -> None:
    """Neither the engine nor the gradients of a script or program are in the settings."""
    records = [one for one in block_trace() if not isinstance(one, CallStart | Speed)]
    script = words(chrome.header(view_of(records), "replay", 120))
    assert "  script · cpu" in script
    start = records[0]
    assert isinstance(start, Start)
    settings = structs.replace(start.settings, program=True)
    records[0] = structs.replace(start, settings=settings)
    program = words(chrome.header(view_of(records), "replay", 120))
    assert "  program · cpu" in program
    log = words(chrome.header(view_of([*records, NotInLog(kinds=("machine",))]), "replay", 120))
    assert "  a torch log  " in log
    assert "inductor" not in script + program + log


@pytest.mark.parametrize("state", chrome.STATES)
def test_every_state_has_a_glyph_and_a_word(state: chrome.State, block: View) -> None:
    glyph, word = chrome.STATES[state][0].split()
    assert len(glyph) == 1
    assert word in words(chrome.header(block, state, 80))


def test_what_is_selected_and_what_it_is_linked_to(block: View) -> None:
    block.select(refs.source(FILE, 19))
    title, linked, inferred = (row.text for row in chrome.selection(block, 120))
    assert title.startswith("block.py:19")
    assert linked == "18 nodes → 1 kernel k4 softmax"
    assert inferred == (
        "≈18  line inferred: torch recorded none for 14 nodes, made by pass_pattern_1"
    )


def test_a_line_that_no_graph_has_says_why(block: View) -> None:
    block.select(refs.source(FILE, 24))
    assert "left to Python: print() GB0059" in chrome.selection(block, 120)[1].text
    block.select(refs.source(FILE, 2))
    assert "no graph has a node of it" in chrome.selection(block, 120)[1].text


def test_a_ratio_that_means_nothing_is_not_in_the_header(block: View) -> None:
    def header(**changes: object) -> str:
        records = [
            structs.replace(record, **changes) if isinstance(record, Speed) else record
            for record in block.recording.records
        ]
        return words(chrome.header(view_of(records), "replay", 160))

    assert "≈ same (1.06x)" in header()
    assert "1.06x" not in header(noise=0.64)
    assert "1.06x" not in header(compiled_again=3)


@pytest.mark.parametrize(
    ("speedup", "noise", "shown"),
    [(0.34, 0.10, "0.34x"), (0.34, 1.76, "under 0.94x"), (3.0, 0.6, "over 1.20x")],
)
def test_of_a_ratio_with_much_noise_what_is_certain_is_shown(
    speedup: float, noise: float, shown: str
) -> None:
    """As the verdict has it: `At least 1.07x slower`."""
    records = [
        structs.replace(one, speedup=speedup, noise=noise, in_noise=False)
        if isinstance(one, Speed)
        else one
        for one in block_trace()
    ]
    assert f"  {shown} " in words(chrome.header(view_of(records), "replay", 120))
