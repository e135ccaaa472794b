"""The replay and the questions of an exported page: what was known then, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tcw.compiler.trace.records import AnyRecord, GraphBreak
from tcw.viewers.html import replay
from tcw.viewers.html.replay import MOST_STOPS
from tcw.viewers.html.tour import Tour
from tcw.viewers.reader import whole
from tcw.viewers.recording import Recording
from tcw.viewers.teaching.predict import Quiz, Truths
from tests.block_trace import block_trace
from tests.long import mostly_long
from tests.no_torch.asking import stopped
from tests.no_torch.html.test_document import check, data_of, page, words
from tests.no_torch.two_runs import two_runs

SCREENS = 260
"""Enough for every view and stop, and some questions; a page of all of them takes seconds."""


def shown(data: dict[str, Any], screen: int) -> str:
    """All text of a screen."""
    _, _, header, bar, _, own = data["screens"][screen]
    panels = [data["panels"][data["places"][place][0]] for place in own]
    rows = [*bar, *(row for panel in panels for row in panel["rows"])]
    head = "".join(map(str, data["headers"][header][1::2]))
    return "\n".join([head, *(words(data, row) for row in rows)])


def test_a_stop_shows_what_was_known_then() -> None:
    tour, text = page(block_trace(), most_screens=SCREENS)
    data = data_of(text)
    check(data)
    assert 1 < len(data["stops"]) <= MOST_STOPS
    first, last = (shown(data, data["stops"][at][1]) for at in (0, -1))
    assert "2 breaks" not in first
    assert "2 breaks" in last
    labels = [label for label, _ in data["stops"]]
    assert labels[0].startswith("0/0")
    assert any(label.endswith(", fusion") for label in labels)
    for key in [key for _, key in tour.stops] + [
        key for _, keys in tour.puzzles for key in keys.values()
    ]:
        assert not any(place.moves or place.opens for place in tour.screens[key].places)


@pytest.mark.parametrize("records", mostly_long((block_trace, two_runs, stopped), (stopped,)))
def test_the_rest_of_the_page_is_of_the_whole_trace(
    records: Callable[[], list[AnyRecord]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = data_of(page(records(), most_screens=SCREENS)[1])
    check(found)
    monkeypatch.setattr(Tour, "_replay", lambda tour: None)
    plain = data_of(page(records(), most_screens=SCREENS)[1])
    assert plain["stops"] == []
    assert {name: shown(found, key) for name, key in found["tabs"].items()} == {
        name: shown(plain, key) for name, key in plain["tabs"].items()
    }


def test_the_questions_are_the_workbenchs_with_their_answers() -> None:
    tour, text = page(block_trace(), most_screens=SCREENS)
    data = data_of(text)
    truths, quiz = Truths(tour.reader.recording), Quiz()
    expected = []
    while (question := quiz.next(truths)) is not None:
        truth = truths.truth(question.id)
        assert truth is not None
        expected.append(truth)
        quiz.ask(question)
        quiz.answer(truth.choice, truth)
    choices = [choice for choice, _ in data["puzzles"]]
    assert len(choices) > 8
    assert choices == [one.choice for one in expected][: len(choices)]
    assert len({choice for choice, _ in data["puzzles"]}) == 2
    for (choice, keys), truth in zip(data["puzzles"], expected, strict=False):
        asked = shown(data, keys["ask"])
        assert "Will the compiler fuse A and B?" in asked
        assert truth.reason not in asked or not truth.reason
        assert "hint: " in shown(data, keys["hint"])
        other = "apart" if choice == "fuse" else "fuse"
        assert "Right: they are" in shown(data, keys[choice])
        assert "No: they are" in shown(data, keys[other])


def test_a_driven_compile_stops_where_it_waited() -> None:
    records: list[AnyRecord] = stopped()
    reader = whole(Recording(records))
    labels = [stop.label for stop in replay.stops(reader)]
    assert len(labels) == len(reader.view.track.waits)
    assert any(": " in label for label in labels), labels


def test_a_long_recording_has_evenly_chosen_stops() -> None:
    breaks = [one for one in block_trace() if isinstance(one, GraphBreak)]
    assert breaks
    places = [(number, "") for number in range(1000)]
    some = replay._some(places)
    assert len(some) == MOST_STOPS
    assert some[-1] == places[-1]
    assert replay._some(places[:5]) == places[:5]


def test_a_full_page_has_no_room_for_it() -> None:
    tour, text = page(block_trace(), 20_000)
    assert tour.left_out
    check(data_of(text))
