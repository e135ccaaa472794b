from __future__ import annotations

import pytest

from tcw.compiler.trace.records import Source, Text
from tcw.viewers.kit.spans import Line, width_of
from tcw.viewers.panes import timeline
from tcw.viewers.panes.view import View
from tcw.viewers.words import number
from tests.block_trace import large_trace
from tests.no_torch.viewers.panes.conftest import view_of
from tests.no_torch.viewers.test_function_names import SOURCE, start


def words(line: Line) -> str:
    return "".join(span[0] for span in line)


@pytest.mark.parametrize("width", [100, 120, 200])
def test_it_fits_and_clicks_find_the_record(width: int, block: View) -> None:
    above, below, right = timeline.timeline(block, width)
    assert width_of(above) <= width
    assert width_of(below) + width_of(right) <= width
    assert words(above).count("✗") == 5
    assert words(above).count("↻") == 4
    for x in range(1, width_of(above) - 1):
        block.playhead = timeline.at(block, width, x)
        segment = block.track.segment_at(block.playhead)
        assert segment is not None
        assert segment.first < block.playhead <= segment.last + 1
        if words(above)[x] != " " and segment.last - segment.first > width:
            drawn = words(timeline.timeline(block, width)[0])
            assert drawn.index("▼") == x


def test_attempts_have_segments_and_one_name(block: View) -> None:
    above, below, _ = timeline.timeline(block, 200)
    assert len(words(above).split()) == 12
    assert words(below).count("0/0") == 1
    assert "0/0 forward" in words(below)


def test_functions_are_named_as_elsewhere() -> None:
    """Of two with one name, the class is shown; a resumed one has its line."""
    first, second = start("0/0", 2), start("1/0", 7)
    rest = start("2/0", 7, resumes_at=8)
    records = [Text(hash="a", body=SOURCE), Source(file="/m.py", text="a"), first, second, rest]
    _, below, _ = timeline.timeline(view_of(records), 100)
    assert words(below).split() == ["0/0", "Norm.forward", "1/0", "Expert.forward", "2/0", "→8"]


def test_past_and_ahead(block: View) -> None:
    block.playhead = 300
    above, _, right = timeline.timeline(block, 120)
    before, _, after = words(above).partition("▼")
    assert "─" not in before
    assert "━" not in after
    assert words(right).endswith("record 300 / 598 ")


def test_too_many_compiles_show_those_around_the_present_one() -> None:
    view = view_of(large_trace(8000), "20/0")
    view.playhead = len(view.recording.records) - 1
    above, _, _ = timeline.timeline(view, 100)
    assert "▼" in words(above)
    assert width_of(above) <= 100


def test_a_finished_trace_is_shown_to_its_end(block: View) -> None:
    words = "".join(text for text, _ in timeline.position(block, "overview"))
    assert words == f"{number(block.track.count)} records "
    assert timeline.place(block, "overview") == block.track.count
