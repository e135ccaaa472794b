"""The programs of the benchmark of advice are in order, and its table counts what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.advice import findings_of, right_cause, ticked, totals
from benchmarks.advice_cases import Fix, case_of, cases

ALL = list(cases())


def test_there_are_enough_programs_of_each_kind() -> None:
    assert len(ALL) >= 80
    assert len({case.gb for case in ALL if case.gb}) >= 40
    assert sum(case.causes[0].kind == "recompile" for case in ALL) >= 30
    assert sum(bool(case.fixes) for case in ALL) >= 60


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_program_names_its_cause_and_a_fix_or_why_there_is_none(case: Any) -> None:
    lines = case.file.read_text(encoding="utf-8").splitlines()
    assert all(lines[cause.line - 1].strip() for cause in case.causes)
    if case.fixes:
        assert case.reference() != Fix()
    else:
        assert case.without_fix


def test_a_cause_that_the_program_does_not_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text('"""Text.\n\ncause: break at `x = 2`\nfix: none: no\n"""\n\nx = 1\n')
    with pytest.raises(ValueError, match="x = 2"):
        case_of(file)


def finding(line: int, kind: str, file: str = "branch_on_value.py") -> dict[str, Any]:
    return {"file": f"/there/{file}", "line": line, "kind": kind}


def test_the_first_finding_has_to_be_at_the_cause() -> None:
    (case,) = cases("branch_on_value")
    line = case.causes[0].line
    right, wrong = finding(line, "break"), finding(line + 1, "break")
    assert right_cause(case, [right, wrong])
    assert not right_cause(case, [wrong, right])
    assert not right_cause(case, [finding(line, "recompile")])
    assert not right_cause(case, [finding(line, "break", "other.py")])
    assert not right_cause(case, findings_of({"failed": "no"}))


@pytest.mark.parametrize(
    ("safety", "tried", "ticks"),
    [
        ("same results", {"results": "same"}, True),
        ("changes behaviour", {"results": "same"}, True),
        ("idea", {"results": "differ"}, False),
        ("idea", None, False),
    ],
)
def test_a_tick_is_a_fix_that_was_tried_and_kept(safety: str, tried: Any, ticks: bool) -> None:
    assert ticked({"safety": safety, "tried": tried}) is ticks


def test_totals_count_ticks_that_fail() -> None:
    def row(cause: bool, fixable: bool, *fixes: tuple[bool, str]) -> dict[str, Any]:
        shown = [{"ticked": ticks, "wrong": wrong} for ticks, wrong in fixes]
        return {"cause": cause, "fixable": fixable, "fixes": shown}

    rows = [
        row(True, True, (True, "")),
        row(True, True, (True, "changes results")),
        row(False, True, (False, "")),
        row(True, False, (False, "")),
    ]
    assert totals(rows) == [
        "causes right: 3 of 4",
        "programs with a ✓ of those for which a fix exists: 2 of 3",
        "✓ that work when pasted: 1 of 2",
        "fixes that work where none was known: 1",
    ]
