"""Choosing otherwise at what is decided: another run, live or from a recorded trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.protocol.commands import Breakpoint, Rerun
from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    End,
    Run,
    Start,
    Waiting,
    WhatIf,
)
from tcw.viewers.panes.targets import ToSuggestion
from tcw.viewers.summary.decided import choice_of
from tcw.workbench.tui import compile_again
from tcw.workbench.tui.compile_plan import Allowed
from tests.block_capture import LINES
from tests.block_trace import block_trace
from tests.decided import is_test
from tests.no_torch import profiles
from tests.no_torch.tui.conftest import Drive, Driver, Open, encoded
from tests.no_torch.tui.driven import FUSE, FakeDriver, compiler, head, settings_of


async def revised(driver: Driver, *keys: str) -> Rerun:
    """Scrub back to the decision of a finished run, and veto it."""
    await driver.press("d", "a", "less_than_sign")
    while driver.bench.view.asked is None:
        await driver.press("less_than_sign")
    await driver.press("v", *keys)
    rerun = driver.sent[-1]
    assert isinstance(rerun, Rerun)
    return rerun


async def test_a_decision_in_the_past_is_compiled_again_from_there(drive: Drive) -> None:
    async with drive() as driver:
        rerun = await revised(driver, "enter")
        assert rerun.settings.overrides == {FUSE: "apart"}
        assert (rerun.compare_with, rerun.until) == (1, None)
        assert rerun.because == f"veto {FUSE}"
        assert not any(isinstance(one, Rerun) for one in driver.sent[:-1]), "run 1 is the base"
        assert driver.bench.view.run == 2
        assert driver.bench.view.playhead == 0


async def test_and_stepped_from_there(drive: Drive) -> None:
    async with drive() as driver:
        rerun = await revised(driver, "down", "enter")
        assert rerun.until == Breakpoint(number=0, kind="decision", id=FUSE)
        assert rerun.compare_with == 1


async def test_what_a_run_was_given_is_taken_back_in_the_past(drive: Drive) -> None:
    async with drive() as driver:
        await revised(driver, "enter")
        await driver.go("fusion")
        driver.bench.view.pair = FUSE
        await driver.press("f")
        assert "compare with run 2" in driver.text()
        await driver.press("enter")
        rerun = driver.sent[-1]
        assert isinstance(rerun, Rerun)
        assert rerun.settings.overrides == {}
        assert (rerun.compare_with, rerun.because) == (2, f"without {FUSE}")
        assert driver.bench.view.overrides == {}


async def test_a_pair_of_a_list_of_which_nobody_was_asked(drive: Drive) -> None:
    async with drive() as driver:
        pairs = [one for one in block_trace() if is_test(one) and one.choice == "fuse"]
        await driver.press("d", "a")
        driver.driver.write([structs.replace(pairs[0], id=FUSE + "_1")])
        await driver.until(lambda: choice_of(driver.bench.view.recording, FUSE + "_1") is not None)
        found = choice_of(driver.bench.view.recording, FUSE + "_1")
        assert found is not None
        assert (found[0].default, found[0].choices, found[1]) == ("fuse", ("fuse", "apart"), "fuse")
        driver.bench.view.pair = FUSE + "_1"
        await driver.go("source")
        await driver.press("f")
        assert "nothing to change: fuse was the engine's choice" in driver.lines()[-1]
        await driver.press("v", "enter")
        rerun = driver.sent[-1]
        assert isinstance(rerun, Rerun)
        assert rerun.settings.overrides == {FUSE + "_1": "apart"}


# From a recorded trace


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trace of a driven run; the file beside it, in the current folder, is as it was."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "block.py"
    file.write_text("\n".join(LINES) + "\n")
    settings = settings_of(file=str(file))
    records: list[AnyRecord] = []
    for one in head():
        if isinstance(one, Start | Run):
            one = structs.replace(one, settings=settings)
        if type(one).__name__ == "Source":
            one = structs.replace(one, file=str(file))
        records.append(one)
    decided = Decided(
        id=FUSE, graph="0/0/forward", kind="fuse", default="fuse", choice="fuse",
        choices=("fuse", "apart"),
    )  # fmt: skip
    end = Waiting(number=2, kind="end", why="", stage="run")
    path = tmp_path / "run.tcw"
    path.write_bytes(encoded([*records, decided, end, End(status="ok", seconds=1.0)]))
    return path


class Again:
    """Stands in for `Driver`: a run 1 that goes on by itself."""

    def __init__(self) -> None:
        self.first: Rerun | None = None
        self.trace: Path | None = None
        self.driver: FakeDriver | None = None

    def __call__(self, settings, trace, on_record, breakpoints, first=None):  # type: ignore[no-untyped-def]
        self.first, self.trace = first, trace
        opening = [
            structs.replace(one, settings=settings, **({"because": first.because} if run else {}))
            if isinstance(one, Start | Run)
            else one
            for one in head()[:-1]
            for run in [isinstance(one, Run)]
        ]
        over = Waiting(number=1, kind="end", why="the run is over", stage="run")
        self.driver = FakeDriver([*opening, over], compiler)
        return self.driver.start(settings, trace, on_record, breakpoints)


async def test_a_recorded_decision_is_run_again_from_the_file(
    open_trace: Open, recorded: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(recorded) as reader:
        reader.app.drive = again
        reader.bench.view.pair = FUSE
        await reader.press("v")
        assert "compare with this recording" in reader.text()
        await reader.press("enter")
        assert "keep the new recording in" in reader.text()
        assert "has changed" not in reader.text()
        await reader.type(str(tmp_path / "again.tcw"))
        await reader.press("enter")
        assert "Run this?" in reader.text()
        await reader.press("y")
        await reader.until(lambda: reader.bench.state == "finished")
        await reader.settle()
        assert again.trace == tmp_path / "again.tcw"
        assert again.first is not None
        assert again.first.settings.overrides == {FUSE: "apart"}
        bench = reader.bench
        assert bench.view.driven
        assert bench.view.base is not None
        assert bench.view.base.recording.start is not None
        assert bench.view.base.recording.start.settings.overrides == {}
        await reader.go("what-if")
        assert "the base is a recording" in reader.text()
        assert bench.overriding.history.kept == {}, "w times both here"
        await reader.press("w")
        assert again.driver is not None
        reruns = [command for command in again.driver.commands if isinstance(command, Rerun)]
        assert [rerun.settings.overrides for rerun in reruns] == [{}, {FUSE: "apart"}]
        assert bench.overriding.history.unsaved


async def test_a_trace_is_not_written_over(
    open_trace: Open, recorded: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(recorded) as reader:
        reader.app.drive = again
        reader.bench.view.pair = FUSE
        await reader.press("v", "down", "enter")
        await reader.type(str(recorded))
        await reader.press("enter")
        assert "exists already" in reader.lines()[-1]
        assert again.first is None


async def test_settings_of_a_recorded_trace_are_run_again(open_trace: Open, recorded: Path) -> None:
    again = Again()
    async with open_trace(recorded) as reader:
        reader.app.drive = again
        reader.bench.comparing.choose("dynamic", 1)
        await reader.settle()
        await reader.press("enter", "y")
        await reader.until(lambda: again.first is not None)
        await reader.until(lambda: reader.bench.state == "finished")
        assert again.trace is None
        assert again.first is not None
        assert again.first.settings.dynamic is True
        assert again.first.because == "dynamic on"


async def test_what_a_cause_suggests_is_tried(
    open_trace: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_again, "cannot_run", lambda settings: "")
    file = tmp_path / "profile.tcw"
    file.write_bytes(encoded(profiles.masked_attention()))
    model = tmp_path / "model.py"
    model.write_text("model = 1\n")
    again = Again()
    async with open_trace(file, allowed=Allowed(file=model)) as reader:
        reader.app.drive = again
        pane = reader.pane("profile-why")
        rows = [n for n, row in enumerate(pane.rows) if isinstance(row.opens, ToSuggestion)]
        assert pane.rows[rows[0]].copies == "--edit no-mask:21"
        await reader.press("tab", "tab")
        pane.go(rows[0])
        await reader.press("enter")
        await reader.settle()
        await reader.press("enter", "y")
        await reader.until(lambda: again.first is not None)
        assert again.first is not None
        assert again.first.settings.file == str(model)
        assert again.first.settings.edits == ("no-mask:21",)
        assert again.first.because == "try --edit no-mask:21"


async def test_without_torch_nothing_is_run(
    open_trace: Open, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_again.importlib.util, "find_spec", lambda name: None)
    async with open_trace(recorded) as reader:
        reader.bench.comparing.choose("dynamic", 1)
        await reader.settle()
        assert "torch is not installed here" in reader.lines()[-1]


async def test_times_of_live_runs_are_not_those_of_the_recording(
    open_trace: Open, recorded: Path
) -> None:
    again = Again()
    async with open_trace(recorded) as reader:
        reader.app.drive = again
        reader.bench.comparing.choose("dynamic", 1)
        await reader.settle()
        await reader.press("enter", "y")
        await reader.until(lambda: reader.bench.view.driven)
        assert again.driver is not None
        again.driver.write([WhatIf(base=1, run=1, scope="call")])
        await reader.settle()
        base = reader.bench.view.base
        assert base is not None
        assert reader.bench.view.derived.difference(base).measured == ()
