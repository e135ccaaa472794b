"""A driven compile: every key sends what it says, and the screen says where it stands."""

from __future__ import annotations

import pytest

from tcw.compiler.protocol.commands import Go, Pause, SetBreakpoints, Stop
from tcw.compiler.trace.records import Resumed, Warned
from tests.no_torch.tui.conftest import Drive
from tests.no_torch.tui.driven import FUSE


def modes(sent: list[object]) -> list[str]:
    return [command.mode for command in sent if isinstance(command, Go)]


async def test_it_waits_at_the_start_and_says_so(drive: Drive) -> None:
    async with drive() as driver:
        assert "◆ waiting" in driver.lines()[0]
        assert "s step" in driver.lines()[-1]
        assert driver.sent == []


@pytest.mark.parametrize(
    ("key", "mode"),
    [
        ("s", "instruction"), ("S", "over"), ("F", "out"), ("L", "line"), ("c", "continue"),
        ("d", "decision"), ("P", "pass"), ("H", "graph"), ("t", "stage"),
    ],
)  # fmt: skip
async def test_keys_of_steps(key: str, mode: str, drive: Drive) -> None:
    async with drive() as driver:
        await driver.press(key)
        assert modes(driver.sent) == [mode]


async def test_steps_are_counted_without_a_total(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("s", "s", "s")
        assert "step 3 " in driver.lines()[0]
        assert " of " not in driver.lines()[0]
        assert "◆ waiting" in driver.lines()[0]
        assert driver.bench.navigator.arrangement in ("steps", "source")


async def test_facts_stay_while_nothing_that_they_sum_up_has_come(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("s", "s")
        before = driver.bench.view.derived
        await driver.press("s", "s", "s")
        assert driver.bench.view.derived is before
        assert len(before.recording.all(Resumed)) == 5
        await driver.press("d")
        assert driver.bench.view.derived is not before


async def test_at_a_decision_step_means_the_next_of_any_kind(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d", "s")
        assert modes(driver.sent) == ["decision", "any-decision"]


async def test_commands_while_it_runs_are_not_sent(drive: Drive) -> None:
    async with drive() as driver:
        driver.driver.write([Resumed(command="continue")])
        await driver.until(lambda: driver.bench.state == "running")
        assert "▸ running" in driver.lines()[0]
        await driver.press("s")
        assert driver.sent == []
        assert "is running" in driver.lines()[-1]
        await driver.press("i")
        assert isinstance(driver.sent[-1], Pause)


async def test_ctrl_c_stops_the_recording_then_the_tool(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("ctrl+c")
        assert isinstance(driver.sent[-1], Stop)
        await driver.until(lambda: driver.bench.state == "finished")
        assert driver.app.is_running
        await driver.press("w")
        assert "nothing is overridden" in driver.lines()[-1]
        await driver.press("ctrl+c")
        assert driver.app.return_code == 0
    assert driver.driver.joined.is_set()


async def test_a_breakpoint_on_a_line_goes_on_and_off(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("s")
        await driver.go("source")
        await driver.press("b")
        command = driver.sent[-1]
        assert isinstance(command, SetBreakpoints)
        assert command.breakpoints[0].kind == "line"
        assert command.breakpoints[0].line == 17
        assert "block.py:17" in driver.lines()[-1]
        await driver.press("b")
        assert driver.sent[-1] == SetBreakpoints(breakpoints=())


async def test_breakpoints_of_all_kinds_from_the_palette(drive: Drive) -> None:
    async with drive() as driver:
        await driver.choose("break at graph break")
        await driver.choose("break at first rejection")
        await driver.choose("decision over")
        for _ in range(4):
            await driver.press("backspace")
        await driver.type("2 KB")
        await driver.press("enter")
        assert [one.kind for one in driver.bench.view.breakpoints] == [
            "break", "rejection", "decision",
        ]  # fmt: skip
        assert driver.bench.view.breakpoints[1].once
        assert driver.bench.view.breakpoints[2].at_least == 2048
        await driver.press("B")
        assert "3 of 3 on" in driver.text()
        await driver.press("enter")
        assert not driver.bench.view.breakpoints[0].enabled
        await driver.press("D")
        assert [one.number for one in driver.bench.view.breakpoints] == [2, 3]
        await driver.press("B")
        assert driver.bench.navigator.arrangement != "breakpoints"


async def test_kinds_of_decisions_from_the_palette(drive: Drive) -> None:
    async with drive() as driver:
        await driver.choose("next fusion")
        assert modes(driver.sent) == ["fusion"]
    async with drive() as driver:
        await driver.choose("decision of any")
        assert modes(driver.sent) == ["any-decision"]


async def test_a_breakpoint_on_a_pair_is_on_that_very_pair(
    drive: Drive,
) -> None:
    async with drive() as driver:
        await driver.press("d", "a")
        await driver.go("fusion")
        driver.bench.set_focus(driver.pane("fusion"))
        await driver.press("b")
        command = driver.sent[-1]
        assert isinstance(command, SetBreakpoints)
        assert [(one.kind, one.id) for one in command.breakpoints] == [("decision", FUSE)]
        assert "decision fuse amax + exp" in driver.lines()[-1]
        await driver.choose("break at fusion decisions")
        assert [one.id for one in driver.bench.view.breakpoints] == [FUSE, ""]


async def test_what_the_recording_lacks_is_said_at_once(drive: Drive) -> None:
    async with drive() as driver:
        lost = "the trace could not be written: No space left on device"
        driver.driver.write([Warned(message=lost, asked=True)])
        await driver.until(lambda: lost in driver.lines()[-1])


async def test_a_terminal_that_becomes_tiny_and_large_again(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d")
        before = driver.text()
        await driver.pilot.resize_terminal(20, 5)
        await driver.settle()
        assert driver.cells() == [20] * 5
        await driver.press("s", "tab", "j", "B", "O", "question_mark", "escape", "colon", "escape")
        assert driver.cells() == [20] * 5
        await driver.pilot.resize_terminal(120, 40)
        await driver.settle()
        assert driver.cells() == [120] * 40
    async with drive() as driver:
        await driver.press("d")
        await driver.pilot.resize_terminal(20, 5)
        await driver.settle()
        await driver.pilot.resize_terminal(120, 40)
        await driver.settle()
        assert driver.text() == before


async def test_run_to_cursor(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("s")
        await driver.go("source")
        await driver.press("j", "j", "r")
        command = driver.sent[-1]
        assert isinstance(command, Go)
        assert command.mode == "cursor"
        assert command.until is not None
        assert command.until.line == 19
