"""A trace from a stranger runs nothing that its reader did not see and allow."""

from __future__ import annotations

import ast
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tcw.compiler.protocol.commands import Rerun
from tcw.compiler.trace.records import Settings
from tcw.viewers.recording import Recording
from tcw.workbench.tui.compile_plan import Allowed, RunRefused, reviewed
from tcw.workbench.tui.overlay import Consent
from tests.block_capture import LINES
from tests.no_torch.strangers import RUNS, stranger, unlike_files
from tests.no_torch.tui.conftest import Open, Reader, encoded
from tests.no_torch.tui.driven import FUSE
from tests.no_torch.tui.test_compile_again import Again

ROOT = Path(__file__).parents[3]
TEXT = "\n".join(LINES) + "\n"
Way = Callable[[Reader], Awaitable[None]]


@pytest.fixture
def block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader's own file of that text, in the current folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "block.py"
    file.write_text(TEXT)
    return file


def unbroken(reader: Reader) -> str:
    """The screen's lines as one: the name of a temporary folder may need several."""
    return "".join(line.strip() for line in reader.lines())


def mailed(folder: Path, file: str | Path, **asked: object) -> Path:
    trace = folder / "mailed.tcw"
    trace.write_bytes(encoded(stranger(str(file), **asked)))
    return trace


async def by_settings(reader: Reader) -> None:
    await reader.press("comma", "j", "enter")


async def by_veto(reader: Reader) -> None:
    reader.bench.view.pair = FUSE
    await reader.press("v", "enter")


async def by_stepping(reader: Reader) -> None:
    reader.bench.view.pair = FUSE
    await reader.press("v", "down", "enter")


async def by_what_if(reader: Reader) -> None:
    reader.bench.view.pair = FUSE
    await reader.press("v", "down", "down", "enter", "w")


async def by_inputs(reader: Reader) -> None:
    reader.bench.comparing.ask_inputs()
    await reader.type("f32[2]")
    await reader.press("enter")


WAYS = [by_settings, by_veto, by_stepping, by_what_if, by_inputs]


@pytest.mark.parametrize("way", WAYS)
async def test_an_expression_is_not_run(
    way: Way, open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block, model=RUNS)) as reader:
        reader.app.drive = again
        await way(reader)
        assert "Nothing was run" in reader.text()
        assert "tcw open TRACE --model EXPR" in " ".join(reader.text().split())
        await reader.press("y")
        assert again.first is None


@pytest.mark.parametrize(
    ("way", "answer"),
    [*((way, "enter") for way in WAYS), *((by_settings, key) for key in ("escape", "n", "q"))],
)
async def test_the_answer_is_no_unless_it_is_yes(
    way: Way, answer: str, open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block)) as reader:
        reader.app.drive = again
        await way(reader)
        await reader.press("enter")
        assert "Run this?" in reader.text()
        assert str(block) in unbroken(reader)
        await reader.press(answer)
        assert "nothing was run" in reader.lines()[-1]
        assert again.first is None


ASKED: dict[str, object] = {
    "model": "attention",
    "inputs": ("f32[100000,100000]", "'; rm -rf /'"),
    "edits": ("drop:15",),
    "torch_settings": ("torch._inductor.config.cpp.cxx = ('./cxx',)",),
    "arguments": ("--delete", "/"),
    "overrides": {FUSE: "apart"},
    "cached": True,
}


async def test_all_of_it_is_shown_and_just_that_is_run(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block, **ASKED), (120, 50)) as reader:
        reader.app.drive = again
        reader.bench.comparing.choose("dynamic", 1)
        await reader.settle()
        await reader.press("enter")
        shown = reader.text()
        for words in (
            "Run this?", "dynamic on", "its text is the recorded one",
            "attention", "f32[100000,100000]", "37.3 GB", "'; rm -rf /'", "drop:15",
            "torch._inductor.config.cpp.cxx = ('./cxx',)", "--delete", f"{FUSE} = apart",
            "torch's own caches", "y run it",
        ):  # fmt: skip
            assert words in shown, words
        for path in (block, tmp_path):
            assert str(path) in unbroken(reader)
        await reader.press("y")
        await reader.until(lambda: again.first is not None)
        await reader.until(lambda: reader.bench.state == "finished")
        assert again.first is not None
        run = again.first.settings
        assert run.file == str(block)
        assert run.dynamic is True
        assert {name: getattr(run, name) for name in ASKED} == ASKED


async def test_after_one_yes_it_is_the_readers_own(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block)) as reader:
        reader.app.drive = again
        await by_veto(reader)
        await reader.press("enter", "y")
        await reader.until(lambda: reader.bench.state == "finished")
        await reader.press("comma", "j", "enter")
        assert not isinstance(reader.app.screen, Consent)
        assert again.driver is not None
        assert any(isinstance(command, Rerun) for command in again.driver.commands)


async def test_what_changes_while_it_is_asked_is_not_run(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block), allowed=Allowed(file=block)) as reader:
        reader.app.drive = again
        await by_settings(reader)
        await reader.press("enter")
        assert "yours, by --file" in reader.text()
        block.write_text("model = 1\n")
        await reader.press("y")
        assert "has changed since it was shown" in reader.text()
        assert again.first is None


async def test_what_does_not_fit_is_read_to_its_end_first(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    hidden = "a" + " " * 4000 + "; evil"
    async with open_trace(mailed(tmp_path, block, arguments=(hidden,)), (80, 24)) as reader:
        reader.app.drive = again
        await by_settings(reader)
        await reader.press("enter")
        assert "more below" in reader.text()
        assert "; evil" not in reader.text()
        await reader.press("y")
        assert isinstance(reader.app.screen, Consent)
        assert again.first is None
        while "; evil" not in reader.text():
            await reader.press("j")
        await reader.press(*["j"] * 10)
        assert "more below" not in reader.text()
        await reader.press("y")
        await reader.until(lambda: again.first is not None)


async def test_a_click_beside_it_is_no(open_trace: Open, block: Path, tmp_path: Path) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block)) as reader:
        reader.app.drive = again
        await by_settings(reader)
        await reader.press("enter")
        await reader.pilot.click(offset=(1, 1))
        await reader.settle()
        assert not isinstance(reader.app.screen, Consent)
        assert again.first is None


async def test_no_control_character_reaches_the_terminal(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    evil = "\x1b[2J\x1b]0;x\x07\n\u202e\u2066\x9b31m"
    for name, asked in (("arguments", (evil,)), ("model", evil), ("torch_settings", (evil,))):
        async with open_trace(mailed(tmp_path, block, **{name: asked})) as reader:
            reader.app.drive = Again()
            await by_settings(reader)
            await reader.press(*(["enter"] if name == "arguments" else []))
            assert isinstance(reader.app.screen, Consent)
            assert "".join(reader.lines()).isprintable()
            assert reader.cells() == [120] * 40


async def test_yes_on_the_command_line_is_not_asked_again(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block), allowed=Allowed(yes=True)) as reader:
        reader.app.drive = again
        await by_settings(reader)
        await reader.press("enter")
        await reader.until(lambda: again.first is not None)


async def test_view_only_runs_nothing_and_says_so(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    again = Again()
    async with open_trace(mailed(tmp_path, block), allowed=Allowed(view_only=True)) as reader:
        reader.app.drive = again
        reader.bench.view.pair = FUSE
        await reader.press("v")
        assert "Run the file again" not in reader.text()
        await reader.press("escape")
        await by_settings(reader)
        assert "--view-only" in reader.text()
        await reader.press("y")
        assert again.first is None


# What may run at all


def refused(
    block: Path, allowed: Allowed | None = None, file: str | None = None, **asked: object
) -> str:
    records = stranger(str(block) if file is None else file, **asked)
    settings = records[0].settings  # type: ignore[union-attr]
    assert isinstance(settings, Settings)
    with pytest.raises(RunRefused) as found:
        reviewed(settings, Recording(records), allowed or Allowed())
    return str(found.value)


def test_files_that_are_none(block: Path, tmp_path: Path) -> None:
    for file in unlike_files(tmp_path):
        assert refused(block, file=file)
        assert refused(block, Allowed(yes=True), file=file)
    os.mkfifo(tmp_path / "fifo.py")
    assert "not a file" in refused(block, file=str(tmp_path / "fifo.py"))
    for name, text in (("run.tcw", TEXT), ("run.py", '{"record": 1}\n')):
        (tmp_path / name).write_text(text)
        assert "trace" in refused(block, file=str(tmp_path / name))
    with (tmp_path / "huge.py").open("wb") as stream:
        stream.truncate(8 << 30)
    assert "more than 16 MB" in refused(block, file=str(tmp_path / "huge.py"))


@pytest.mark.parametrize("yes", [False, True])
def test_a_file_elsewhere_takes_a_word(
    yes: bool, block: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.py").symlink_to(block)
    monkeypatch.chdir(inner)
    for file in (str(block), "../block.py", str(inner / "link.py"), str(inner / ".." / "block.py")):
        assert f"tcw open TRACE --file {block}" in refused(block, Allowed(yes=yes), file=file)
    records = stranger(str(block))
    plan = reviewed(records[0].settings, Recording(records), Allowed(file=block))  # type: ignore[union-attr]
    assert plan.settings.file == str(block)


@pytest.mark.parametrize("yes", [False, True])
def test_another_text_takes_a_word(yes: bool, block: Path) -> None:
    block.write_text(TEXT + "import os\n")
    assert "differs from the recorded one" in refused(block, Allowed(yes=yes))
    records = stranger(str(block))
    plan = reviewed(records[0].settings, Recording(records), Allowed(file=block))  # type: ignore[union-attr]
    assert "differs from the recorded one" in plan.lines[0].note
    without = [record for record in records if type(record).__name__ != "Source"]
    with pytest.raises(RunRefused, match="no text of it to compare"):
        reviewed(records[0].settings, Recording(without), Allowed())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "asked",
    [
        {"model": RUNS}, {"model": "Net(4)"}, {"model": "a.b"}, {"model": "a\n"}, {"model": " "},
        {"model": "lambda: 0"}, {"model": "x" * 100 + "()"},
        {"torch_settings": ("x = f()",)}, {"torch_settings": ("import os",)},
        {"edits": ("drop",)}, {"edits": ("eval:3",)}, {"edits": ("drop:/etc/passwd:3",)},
        {"edits": ("drop:../../other.py:3",)}, {"inputs": ("f32[",)}, {"inputs": ("os.x()",)},
        {"inputs": ("f32[" + "9" * 5000 + "]",)}, {"inputs": ("(" * 5000,)},
        {"mode": "rm"}, {"arch": "sm_90; rm"}, {"arch": "--output-file=x"},
        {"arguments": ("a" * 30_000,)}, {"overrides": {str(n): "a" * 20 for n in range(2000)}},
    ],
)  # fmt: skip
def test_what_a_trace_may_not_ask_for(asked: dict[str, object], block: Path) -> None:
    words = refused(block, **asked)
    assert len(words) < 1000
    assert refused(block, Allowed(yes=True), **asked) == words


def test_a_readers_own_expression(block: Path) -> None:
    records = stranger(str(block), model=RUNS)
    plan = reviewed(records[0].settings, Recording(records), Allowed(model="Net(4)"))  # type: ignore[union-attr]
    assert plan.settings.model == "Net(4)"
    assert any(line.note == "yours, by --model" for line in plan.lines)


async def test_overrides_are_written_here_and_through_no_link(
    open_trace: Open, block: Path, tmp_path: Path
) -> None:
    """Not beside the file that the trace names."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    trace = mailed(tmp_path, elsewhere / "block.py", overrides={FUSE: "apart"}, model=RUNS)
    (tmp_path / "overrides.toml").symlink_to(tmp_path / "victim")
    async with open_trace(trace) as reader:
        await reader.press("W")
        assert str(elsewhere) not in reader.lines()[-1]
        await reader.press("enter")
        assert "symbolic link" in reader.lines()[-1]
        assert not (tmp_path / "victim").exists()
        (tmp_path / "overrides.toml").unlink()
        await reader.press("W", "enter")
        assert FUSE in (tmp_path / "overrides.toml").read_text()
        assert "system" not in reader.bench.offered


# The one way


def _calls(name: str) -> set[tuple[str, str]]:
    """(file, function) of each call of that name in the front end."""
    found: set[tuple[str, str]] = set()
    for file in (ROOT / "workbench").rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    called = node.func if isinstance(node, ast.Call) else None
                    if getattr(called, "id", getattr(called, "attr", "")) == name:
                        found.add((file.name, function.name))
    return found


def test_one_function_leads_from_a_trace_to_a_worker() -> None:
    assert _calls("LiveFeed") == {("app.py", "run_live"), ("compile_again.py", "_start")}
    assert _calls("drives") == {("compile_again.py", "_start")}
    assert _calls("_start") >= {("compile_again.py", "run_again")}
    assert _calls("CompilePlan") == {
        ("compile_plan.py", "reviewed"),
        ("compile_again.py", "_plan"),
    }
