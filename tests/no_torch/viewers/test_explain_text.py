"""The text of `tcw explain`, whole, as goldens."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Environment,
    Failure,
    HookStatus,
    Output,
    Settings,
    Warned,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text, write
from tcw.viewers.text.sections import SECTIONS, SectionView, section
from tests.block_trace import block_trace
from tests.conftest import Golden
from tests.no_torch import traces


def text(records: list[AnyRecord], width: int = 100, height: int = 40, **more: object) -> str:
    lines = explain(Recording(records, file=Path("run.tcw")), width, height, **more)  # type: ignore[arg-type]
    return to_text(lines, width)


CASES: dict[str, Callable[[], list[AnyRecord]]] = {
    "clean": traces.clean,
    "slower": traces.slower,
    "failed": traces.failed,
    "timeout": traces.timed_out,
    "until-capture": traces.until_capture,
    "predicted": traces.predicted,
    "nothing-compiled": traces.nothing_compiled,
    "recompile-limit": traces.recompile_limit,
    "hostile": traces.hostile,
    "cut-off": lambda: traces.without(block_trace(), End)[:380],
}


@pytest.mark.parametrize("name", CASES)
def test_answer(name: str, golden: Golden) -> None:
    golden(f"explain/{name}.txt", text(CASES[name]()))


def test_a_script_has_no_engine_of_the_settings() -> None:
    """It names its own in its torch.compile, and has its own `no_grad`."""
    records = [*traces.opening(), *traces.frame(), traces.end()]
    assert text(records).startswith("norm.py  script · torch 2.13.0 · ")
    assert text([*traces.opening(), traces.call(), *traces.frame()]).startswith(
        "norm.py  no-grad · inductor · "
    )


@pytest.mark.parametrize("width", [80, 100, 200])
def test_block(width: int, golden: Golden) -> None:
    golden(f"explain/block-{width}.txt", text(block_trace(), width, trace="run.tcw"))


@pytest.mark.parametrize("name", SECTIONS)
def test_section(name: str, golden: Golden) -> None:
    recording = Recording(block_trace())
    summary = summarise(recording)
    view = SectionView(recording, summary, 120)
    golden(f"explain/section-{name}.txt", to_text(section(name)(view), 120))


def test_eager_is_blamed_only_after_it_was_tried() -> None:
    assert "torch.compile is not the cause" in text(traces.failed(True))
    assert "Eager works: torch.compile is the cause" in text(traces.failed(False))
    assert "cause" not in text(traces.failed(None))


@pytest.mark.parametrize("width", [80, 99, 133, 300])
@pytest.mark.parametrize("name", CASES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for row in text(CASES[name](), width, show=SECTIONS).splitlines():
        assert cell_len(row) <= width, row


def test_the_answer_fits_one_screen() -> None:
    """However much there is to say: the rest is counted."""
    records = traces.clean()
    sites = [
        traces.graph_break(compile_id=f"{n}/0", location=traces.at(n + 1, 8, 29)) for n in range(30)
    ]
    shown = text([*records, *sites], height=40)
    assert len(shown.splitlines()) <= 40
    assert "more findings: --show breaks" in shown


def test_ascii_terminal_gets_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write(explain(Recording(block_trace()), 100), stream, 100)
    stream.flush()
    shown = stream.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert "~  12.8 s" in shown
    assert "x  +1 graph" in shown
    assert "4 -> 6" in shown
    assert "\\u" not in shown


def on_terminal(records: list[AnyRecord]) -> str:
    """What a terminal gets."""
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as stream:
        write(explain(Recording(records), 100), stream, 100)
    got = b""
    try:
        while chunk := os.read(master, 65536):
            got += chunk
    except OSError:
        pass
    os.close(master)
    return got.decode().replace("\r\n", "\n")


def test_no_color_is_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = on_terminal(traces.clean())
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert on_terminal(traces.clean()) == text(traces.clean())


def test_hostile_text_reaches_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal(traces.hostile())
    for bad in ("\x1b", "\x07", "\x9b", "\u202e", "\u200b"):
        assert bad not in shown
    assert "[bold red]" in shown
    assert "␛]0;owned␇" in shown


def test_what_this_torch_does_not_offer_is_said() -> None:
    hook = HookStatus(
        name="fusion",
        available=False,
        offers="fusion decisions",
        reason="not available in torch 9.9: no Scheduler.can_fuse",
    )
    records = [Environment(torch="9.9", hooks=(hook,)), *traces.clean()[2:]]
    expected = "note     not recorded: fusion decisions: not available in torch 9.9"
    assert expected in text(records)


def test_frames_left_to_python_are_in_the_breaks_section() -> None:
    shown = text(traces.nothing_compiled(), show=["breaks"])
    assert "left to Python  1 function" in shown
    assert "it is marked as disabled" in shown


def test_a_script_is_not_timed_and_says_so() -> None:
    records = [*traces.opening(), *traces.frame(), traces.end()]
    assert "Speed not measured: the file calls torch.compile itself" in text(records)


def test_what_an_option_asked_for_and_is_missing_comes_first() -> None:
    settings = Settings(file=traces.FILE, device="cuda", arch="sm_99")
    missing = Warned(message="no sm_99 code is predicted: tcw knows sm_90", asked=True)
    records = [*traces.opening(settings), missing, Warned(message="another"), *traces.clean()[-4:]]
    lines = text(records).splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("no sm_99 code is predicted"))
    assert place <= 4
    assert "no code for sm_99 predicted" in lines[0]
    assert sum("sm_99 code" in line for line in lines) == 1
    assert any(line.startswith("note") and "another" in line for line in lines)


@pytest.mark.parametrize(
    ("count", "left"), [(3, ""), (4, "1 more note in"), (5, "2 more notes in")]
)
def test_of_many_notes_the_rest_is_counted(count: int, left: str) -> None:
    notes = [Warned(message=f"note {number}") for number in range(count)]
    shown = text([*traces.opening(), *notes, *traces.clean()[-4:]])
    assert left in shown
    assert ("more note" in shown) == bool(left)


def test_a_program_that_ended_itself_shows_what_it_said_last() -> None:
    said = "usage: train.py\ntrain.py: error: --steps is required\n"
    failure = Failure(
        doing="running the script", type="SystemExit", message="the program ended itself"
    )
    printed = Output(stream="stderr", text=said)
    records = [*traces.opening(), printed, failure, traces.end("exited")]
    assert "stderr  train.py: error: --steps is required" in text(records)


@pytest.mark.parametrize(("count", "words"), [(4, "1 more note in"), (5, "2 more notes in")])
def test_notes_that_are_left_out_are_counted(count: int, words: str) -> None:
    notes = [Warned(message=f"note {number}") for number in range(count)]
    records = [*traces.opening(), *notes, *traces.clean()[-4:]]
    assert f"… {words} the trace" in to_text(explain(Recording(records)), 100)
