"""The panes of two runs: nothing of a name steers the terminal, and no number is cut."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import AnyRecord, Decided, Kernel, Resumed, Run, Waiting, WhatIf
from tcw.viewers.kit.spans import width_of
from tcw.viewers.panes import changes, what_if
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tests.no_torch.two_runs import VETO, two_runs, whatif

NAME = "\x1b[31m[bold]" + "n" * 10_000 + "‮"


def view_of(records: list[AnyRecord]) -> View:
    whole = Recording(records)
    base, run = (
        Derived(part, Provenance(part.records), whole) for part in (whole.runs[1], whole.runs[2])
    )
    return View(run, base=base)


def hostile() -> list[AnyRecord]:
    records: list[AnyRecord] = []
    for one in two_runs():
        if isinstance(one, Kernel):
            one = structs.replace(one, label=NAME, name=NAME)
        elif isinstance(one, Decided):
            one = structs.replace(one, id=f"inductor/0/0/forward/fuse/{NAME}+exp")
        elif isinstance(one, Run):
            one = structs.replace(one, because=f"veto {NAME}")
        records.append(one)
    return records


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_hostile_names(width: int) -> None:
    view = view_of(hostile())
    for pane in (what_if.verdict, changes.diff, changes.changed):
        for row in pane(view, width).rows:
            assert row.text.isprintable(), row.text[:100]


@pytest.mark.parametrize("width", [60, 78, 100, 200])
def test_numbers_are_not_cut(width: int) -> None:
    rows = what_if.verdict(view_of(two_runs()), width).rows
    for row in rows:
        if "µs" in row.text:
            assert width_of((*row.gutter, *row.body)) <= width, row.text


def test_a_later_measurement_is_seen() -> None:
    """Facts remember a difference as long as nothing new was measured."""
    records = two_runs()
    whole = Recording([record for record in records if not isinstance(record, WhatIf)])
    base, run = (
        Derived(part, Provenance(part.records), whole) for part in (whole.runs[1], whole.runs[2])
    )
    view = View(run, base=base)
    assert run.difference(base) is run.difference(base)
    assert "not measured" in "".join(row.text for row in what_if.verdict(view, 100).rows)
    whole.feed([whatif()])
    assert "The veto is faster" in "".join(row.text for row in what_if.verdict(view, 100).rows)


def test_an_answer_on_the_way_is_an_override() -> None:
    """A veto that was chosen where the compile waited, and that no settings hold."""
    records: list[AnyRecord] = []
    for one in two_runs():
        if isinstance(one, Run) and one.number == 2:
            one = structs.replace(one, settings=structs.replace(one.settings, overrides={}))
            waits = Waiting(number=1, kind="decision", why="step", stage="fusion", decision=VETO)
            records += [one, waits, Resumed(command="step", choice="apart")]
        else:
            records.append(one)
    view = view_of(records)
    words = [row.text for row in changes.changed(view, 60).rows]
    assert any("the veto holds" in line for line in words)
    assert "The veto is faster" in "".join(row.text for row in what_if.verdict(view, 100).rows)


def test_a_call_measured_beside_its_kernel() -> None:
    call = structs.replace(whatif(), scope="call", base_kernels=(), run_kernels=(), graph="")
    rows = what_if.verdict(view_of([*two_runs(), call]), 160).rows
    assert any(row.text.lstrip().startswith("whole call  135.0 → 120.8 µs") for row in rows)


@pytest.mark.parametrize(
    ("error", "within", "role"),
    [(4.8e-07, None, "dim"), (4.8e-07, True, "dim"), (0.3, False, "warn"), (None, None, "warn")],
)
def test_rounding_is_no_fault(error: float | None, within: bool | None, role: str) -> None:
    differs = structs.replace(whatif(), equal=False, max_error=error, within=within)
    records = [differs if isinstance(two_run, WhatIf) else two_run for two_run in two_runs()]
    rows = what_if.verdict(view_of(records), 160).rows
    (span,) = (span for row in rows for span in row.body if span[0].endswith("the base"))
    assert span[1] == role


def test_what_float64_and_random_numbers_say() -> None:
    differs = structs.replace(whatif(), equal=False, max_error=0.25, within=True)
    off = structs.replace(differs, compiled_off=0.125, eager_off=0.25)
    drawn = structs.replace(differs, within=None, note="random: not comparable (dropout); why")
    for one, said in (
        (off, "output  max error 0.25 against the base (off float64 by 0.12, eager by 0.25)"),
        (drawn, "output  random: not comparable (dropout)"),
    ):
        records = [one if isinstance(old, WhatIf) else old for old in two_runs()]
        (row,) = (r for r in what_if.verdict(view_of(records), 160).rows if "output" in r.text)
        assert said in row.text
        assert all(role != "warn" for _, role in row.body)
