"""A recording beside another: what differs, and both sources line by line."""

from __future__ import annotations

import pytest

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.panes import what_if
from tcw.viewers.panes.targets import ToEffect
from tcw.viewers.reader import Reader, whole
from tcw.viewers.recording import Recording
from tests.block_capture import FILE
from tests.no_torch.hostile import hostile
from tests.no_torch.two_traces import after, before


def reader(base: list[AnyRecord], run: list[AnyRecord]) -> Reader:
    found = whole(Recording(run), whole(Recording(base)).view.derived)
    found.navigator.go("differences")
    return found


def test_the_first_difference_is_the_break_that_is_gone() -> None:
    view = reader(before(), after()).view
    content = what_if.effects_list(view, 100)
    first = next(row for row in content.rows if row.key)
    assert "a graph break gone" in first.text
    assert first.at == ToEffect(0)
    assert content.right[0][0].startswith("1 of ")


def test_a_deleted_line_stands_in_the_first_source_alone() -> None:
    view = reader(before(), after()).view
    (old, new) = (what_if.source_base(view, 80), what_if.source_run(view, 80))
    removed = [row for row in old.rows if row.tint == "removed"]
    assert [row.text.lstrip("0123456789 ✗−").strip()[:6] for row in removed] == ["print("]
    assert not [row for row in new.rows if row.tint]
    assert removed[0].ref == ""
    assert removed[0].key == old.start


def test_a_line_lights_up_with_its_counterpart() -> None:
    found = reader(before(), after())
    line = next(r for r in what_if.source_run(found.view, 80).rows if "softmax" in r.text)
    found.navigator.select(line.ref)
    old, new = what_if.source_base(found.view, 80), what_if.source_run(found.view, 80)
    pairs = [[row.text.strip() for row in side.rows if row.ref == line.ref] for side in (old, new)]
    assert pairs[0][0].split(maxsplit=1)[1] == pairs[1][0].split(maxsplit=1)[1]
    assert [side.start.startswith("src:") for side in (old, new)] == [True, True]
    assert set(old.refs) - {""} == set(new.refs)


def test_the_selection_of_a_moved_line_is_found_in_the_base() -> None:
    found = reader(before(), after())
    moved = next(row for row in what_if.source_run(found.view, 80).rows if "clamp" in row.text)
    found.navigator.select(moved.ref)
    number = refs.split_source(what_if.source_base(found.view, 80).start)[1]
    assert number == refs.split_source(moved.ref)[1] + 1


def test_stepping_goes_round() -> None:
    found = reader(before(), after())
    count = sum(1 for row in what_if.effects_list(found.view, 100).rows if row.key)
    assert count > 1
    for expected in [*range(1, count), 0]:
        found.navigator.step(1, "effects")
        assert found.view.effect == expected


def test_equal_recordings_and_none() -> None:
    same = reader(before(), before()).view
    assert "Nothing changed" in "".join(row.text for row in what_if.effects_list(same, 80).rows)
    for side in (what_if.source_base, what_if.source_run):
        assert not [row for row in side(same, 80).rows if row.tint]
    alone = whole(Recording(before())).view
    assert "compared with no other" in "".join(r.text for r in what_if.effects_list(alone, 80).rows)


def test_a_gone_line_is_called_by_its_own_file() -> None:
    view = reader(before(), [*after()]).view
    difference = view.derived.difference(view.base)  # type: ignore[arg-type]
    effect = difference.effects[0]
    assert effect.line is not None
    assert effect.line.gone
    assert effect.place == f"{FILE.rpartition('/')[2]}:{effect.line.line}"


@pytest.mark.parametrize("width", [20, 60, 160])
def test_hostile_text(width: int) -> None:
    for pair in ((hostile(before(), "added"), after()), (before(), hostile(after(), "added"))):
        view = reader(*pair).view
        for pane in (what_if.effects_list, what_if.source_base, what_if.source_run):
            for row in pane(view, width).rows:
                assert row.text.isprintable()
