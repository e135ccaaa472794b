"""Facts against accepted ones: what counts, what fails, what explains what."""

from __future__ import annotations

import pytest

from tcw.viewers.summary.budget import (
    BadTolerance,
    FactChange,
    Key,
    Tolerance,
    budgeted,
    compare,
    read_tolerance,
)
from tcw.viewers.summary.facts import Fact, FactUnit, Value


def only(
    accepted: dict[Key, Value], *found: Fact, tolerances: dict[str, Tolerance] | None = None
) -> FactChange | None:
    changes = compare(accepted, found, tolerances)
    assert len(changes) < 2
    return changes[0] if changes else None


@pytest.mark.parametrize(
    ("name", "before", "after", "unit", "standing", "fails"),
    [
        ("graphs", 1, 1, "count", None, False),
        ("graphs", 1, 2, "count", "worse", True),
        ("graphs", 2, 1, "count", "better", False),
        ("kernels", 4, 5, "count", "worse", True),
        ("memory peak", 1000, 1009, "bytes", None, False),
        ("memory peak", 1000, 1020, "bytes", "worse", True),
        ("guards", 10, 11, "count", "different", False),
        ("max error", 1e-7, 9e-7, "error", None, False),
        ("max error", 1e-5, 3.9e-5, "error", None, False),
        ("max error", 1e-5, 4.1e-5, "error", "worse", True),
    ],
)
def test_numbers(
    name: str, before: Value, after: Value, unit: FactUnit, standing: str | None, fails: bool
) -> None:
    found = only({("", name): before}, Fact("", name, after, unit))
    assert (found.standing if found else None, found is not None and found.fails) == (
        standing,
        fails,
    )


@pytest.mark.parametrize(
    ("group", "before", "after", "standing"),
    [
        ("break", None, 1, "worse"),
        ("break", 1, None, "better"),
        ("recompile", 1, 2, "worse"),
        ("bypass", None, 1, "worse"),
        ("failure", None, 1, "worse"),
        ("size", "dynamic", None, "worse"),
        ("size", None, "dynamic", "better"),
        ("fused", "yes", "no", "worse"),
        ("fused", "no", "yes", "better"),
        ("library", 4, 5, "different"),
        ("library", None, 1, "different"),
        ("dtype", 4, 3, "better"),
        ("dtype", 4, None, "better"),
        ("dtype", 3, 4, "different"),
        ("dtype", None, 1, "different"),
        ("setting", "None", "0", "different"),
    ],
)
def test_listed_facts(group: str, before: Value | None, after: Value | None, standing: str) -> None:
    accepted: dict[Key, Value] = {} if before is None else {(group, "x"): before}
    facts = [] if after is None else [Fact(group, "x", after)]
    found = only(accepted, *facts)
    assert found is not None
    assert found.standing == standing
    assert found.fails == (standing != "better")
    assert "x" in found.words


def test_a_number_is_not_told_beside_what_explains_it() -> None:
    accepted: dict[Key, Value] = {("", "graph breaks"): 0, ("", "graphs"): 1}
    changes = compare(
        accepted,
        [Fact("", "graph breaks", 1), Fact("", "graphs", 2), Fact("break", "GB0059", 1)],
    )
    assert [change.name for change in changes] == ["GB0059", "graphs"]


def test_what_fails_comes_first_and_the_worst_before() -> None:
    accepted: dict[Key, Value] = {("", "guards"): 1, ("", "loop nests"): 3, ("", "kernels"): 1}
    changes = compare(
        accepted,
        [
            Fact("", "guards", 2),
            Fact("", "loop nests", 2),
            Fact("", "kernels", 2),
            Fact("library", "mm", 1),
            Fact("break", "GB0059", 1),
        ],
    )
    assert [change.name for change in changes] == [
        "GB0059",
        "kernels",
        "mm",
        "guards",
        "loop nests",
    ]


def test_a_time_counts_only_where_it_was_accepted() -> None:
    slow = Fact("", "compile CPU", 9.0, "seconds")
    assert only({}, slow) is None
    found = only({("", "compile CPU"): 3.0}, slow)
    assert found is not None
    assert not found.fails
    wanted = {"compile CPU": Tolerance(relative=0.5)}
    found = only({("", "compile CPU"): 3.0}, slow, tolerances=wanted)
    assert found is not None
    assert found.fails


def test_a_tolerance_of_a_group_and_an_ignored_one() -> None:
    more = Fact("library", "mm", 5)
    accepted: dict[Key, Value] = {("library", "mm"): 4}
    assert only(accepted, more, tolerances={"library": Tolerance(1)}) is None
    assert only(accepted, more, tolerances={"library": Tolerance(ignored=True)}) is None
    advised = only(accepted, more, tolerances={"library": Tolerance(advice=True)})
    assert advised is not None
    assert not advised.fails


def test_a_budget_has_no_ignored_fact_and_no_time_unasked() -> None:
    error, time = Fact("", "max error", 1e-7, "error"), Fact("", "compile CPU", 9.0, "seconds")
    call = Fact("library", "mm", 4)
    assert [budgeted(one, {}) for one in (error, time, call)] == [True, False, True]
    ignored = {name: Tolerance(ignored=True) for name in ("max error", "compile CPU", "library")}
    assert [budgeted(one, ignored) for one in (error, time, call)] == [False, False, False]
    assert budgeted(time, {"compile CPU": Tolerance(relative=0.5)})
    counted = Fact("", "compile instructions", 5_000_000_000, "instructions")
    assert not budgeted(counted, {})
    assert budgeted(counted, {"compile instructions": Tolerance(relative=0.05)})


def test_instructions_within_their_tolerance_and_beyond() -> None:
    key = ("", "compile instructions")
    wanted = {"compile instructions": Tolerance(relative=0.05)}
    more = Fact(*key, 5_400_000_000, "instructions")
    assert only({key: 5_200_000_000}, more, tolerances=wanted) is None
    found = only({key: 5_000_000_000}, more, tolerances=wanted)
    assert found is not None
    assert found.fails
    assert found.words == "compile instructions 5.00 G → 5.40 G (5% allowed)"
    assert only({}, more, tolerances=wanted) is None, "a budget of a machine without counters"


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [
        ("exact", Tolerance()),
        ("advice", Tolerance(advice=True)),
        ("ignore", Tolerance(ignored=True)),
        ("5%", Tolerance(relative=0.05)),
        (2, Tolerance(absolute=2.0)),
        (0.5, Tolerance(absolute=0.5)),
    ],
)
def test_tolerances_are_read(text: object, tolerance: Tolerance) -> None:
    assert read_tolerance(text) == tolerance


@pytest.mark.parametrize("text", ["", "5", "five%", "%", "5%%", -1, True, None, [], "exactly"])
def test_what_is_no_tolerance_says_what_is_expected(text: object) -> None:
    with pytest.raises(BadTolerance, match="expected a number"):
        read_tolerance(text)
