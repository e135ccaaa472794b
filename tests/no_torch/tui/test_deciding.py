"""Answers, what-ifs, overrides and their file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.protocol.commands import Answer, Measure, Rerun
from tcw.compiler.protocol.decision import APART
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, Graph, Location, Source, Text
from tcw.viewers.panes import source
from tests.no_torch.tui import driven
from tests.no_torch.tui.conftest import Drive
from tests.no_torch.tui.driven import FUSE, compile_records, forbidden


async def test_the_bar_asks_with_all_that_is_known(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d")
        shown = driver.text()
        assert "Fuse A and B?" in shown
        assert FUSE in shown
        assert "same domain" in shown
        assert "shared bytes 2.0 MB" in shown
        assert "two loop nests, which may share one C++ function" in shown
        assert "decision 1" in driver.lines()[0]
        assert driver.bench.navigator.arrangement == "fusion"
        assert "a accept" in driver.lines()[-1]


def compiled_from(file: str) -> list[AnyRecord]:
    """The block's compile, had its lines been in another file than the model's."""
    body = "\n".join(f"line_{number}" for number in range(1, 40))
    records: list[AnyRecord] = [Text(hash="library", body=body), Source(file=file, text="library")]
    for record in compile_records():
        if isinstance(record, Graph):
            nodes = tuple(
                structs.replace(node, location=structs.replace(node.location, file=file))
                if node.location is not None
                else node
                for node in record.nodes
            )
            record = structs.replace(record, nodes=nodes)
        records.append(record)
    return records


async def test_the_source_of_a_decision_is_that_of_its_own_file(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = "/site-packages/transformers/modeling_llama.py"
    monkeypatch.setattr(driven, "compile_records", lambda: compiled_from(file))
    place = Location(file=file, line=19)
    async with drive((220, 60), asked={"location": place}) as driver:
        assert source.content(driver.bench.view, 50).subject == "block.py"
        await driver.press("d")
        shown = source.content(driver.bench.view, 50)
        assert shown.subject.endswith("modeling_llama.py")
        assert shown.start in (refs.source(file, 18), refs.source(file, 19))
        assert "line_19" in driver.text()


async def test_accept_and_veto(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d", "a")
        assert driver.sent[-1] == Answer(id=FUSE, choice="")
        assert driver.bench.view.overrides == {}
    async with drive() as driver:
        await driver.press("d", "v")
        assert driver.sent[-1] == Answer(id=FUSE, choice=APART)
        assert driver.bench.view.overrides == {FUSE: APART}
        assert "1 override" in driver.lines()[0]
        assert "■ finished" in driver.lines()[0]


async def test_a_forbidden_choice_is_refused_and_the_decision_stays_open(drive: Drive) -> None:
    changes = {"default": "apart", "rule": "domain", "forbidden": (forbidden(),)}
    async with drive(asked=changes) as driver:
        await driver.press("d", "f")
        assert "refused" in driver.lines()[-1]
        shown = driver.text()
        assert "fuse refused: rule domain: 4096×128 against 512×256" in shown
        assert "the decision is still open" in shown
        assert "◆ waiting" in driver.lines()[0]
        assert driver.bench.view.overrides == {}


async def test_what_if_makes_a_base_where_there_is_none(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d", "v", "w")
        reruns = [command for command in driver.sent if isinstance(command, Rerun)]
        assert [rerun.settings.overrides for rerun in reruns] == [{}, {FUSE: APART}]
        assert reruns[1].compare_with == 2
        assert reruns[1].because == f"veto {FUSE}"
        assert "run 3 of 3" in driver.lines()[0]


async def test_what_if_at_an_open_decision_compares_with_this_run(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d", "w")
        rerun = driver.sent[-1]
        assert isinstance(rerun, Rerun)
        assert rerun.settings.overrides == {FUSE: APART}
        assert rerun.compare_with == 1
        assert driver.bench.view.run == 2
        assert driver.bench.view.base is not None
        await driver.press("M")
        assert driver.sent[-1] == Measure(base=1, run=2, scope="call")
        await driver.press("K")
        assert driver.bench.view.kept == {FUSE: APART}
        await driver.press("O")
        assert "✓" in driver.text()
        assert "met" in driver.text()
        await driver.press("u")
        assert driver.bench.view.overrides == {}


async def test_runs_are_turned_to(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d", "w")
        assert driver.bench.view.run == 2
        await driver.press("T")
        assert driver.bench.view.run == 1
        assert driver.bench.view.base is None


async def test_write_and_replay_command(drive: Drive, tmp_path: Path) -> None:
    async with drive() as driver:
        await driver.press("d", "v", "W", "ctrl+u")
        file = tmp_path / "mine.toml"
        await driver.type(str(file))
        await driver.press("enter")
        assert file.read_text() == f'"{FUSE}" = "apart"\n'
        assert "wrote mine.toml" in driver.lines()[-1]
        await driver.press("y")
        assert driver.app.clipboard.startswith("tcw explain /home/ada/block.py")
        assert driver.app.clipboard.endswith(f"--override {file}")
        await driver.press("q")
        assert driver.app.return_code == 0


async def test_overrides_of_others_are_not_written_over_unasked(
    drive: Drive, tmp_path: Path
) -> None:
    theirs = '# from Monday\n"tcw/0/0/forward/fuse/a+b" = "apart"\n'
    async with drive() as driver:
        file = tmp_path / "mine.toml"
        file.write_text(theirs)
        for said, left in (("n", theirs), ("y", f'"{FUSE}" = "apart"\n')):
            await driver.press("d", "v", "W", "ctrl+u")
            await driver.type(str(file))
            await driver.press("enter")
            assert "to overwrite it" in driver.text()
            await driver.type(said)
            await driver.press("enter")
            assert file.read_text() == left


@pytest.mark.parametrize("what", ["model", "link", "fifo", "folder"])
async def test_what_holds_no_overrides_is_never_written_over(
    what: str, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "model.py"
    model.write_text("import torch\n")
    file = tmp_path / "chosen"
    if what == "link":
        file.symlink_to(model)
    elif what == "fifo":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    else:
        file = model
    async with drive() as driver:
        await driver.press("d", "v", "W", "ctrl+u")
        await driver.type(file.name)
        await driver.press("enter")
        assert "to overwrite it" not in driver.text()
        why = "it exists " if what == "model" else "it is "
        assert f"{file.name}: {why}" in driver.text()
        assert driver.bench.overriding.history.unsaved
    assert model.read_text() == "import torch\n"


async def test_quit_asks_while_overrides_are_not_written(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d", "v", "q")
        assert driver.app.is_running
        assert "1 override not written" in driver.lines()[-1]
        await driver.press("j", "q")
        assert driver.app.is_running
        await driver.press("q")
        assert driver.app.return_code == 0


async def test_more_than_two_choices_are_listed(drive: Drive) -> None:
    changes = {
        "id": "tcw/0/0/forward/vector/nest_softmax", "kind": "vector", "default": "8",
        "choices": ("4", "8", "16"), "first": (), "second": (),
    }  # fmt: skip
    async with drive(asked=changes) as driver:
        await driver.press("d")
        assert "vector of nest_softmax: which?" in driver.text()
        await driver.press("v", "down", "down", "enter")
        assert driver.sent[-1] == Answer(id="tcw/0/0/forward/vector/nest_softmax", choice="16")


async def test_a_veto_on_what_is_apart_already_answers_nothing(drive: Drive) -> None:
    async with drive(asked={"default": "apart", "rule": "domain"}) as driver:
        await driver.press("d")
        assert "v veto   apart already" in driver.text()
        assert "v veto" not in driver.lines()[-1]
        assert "f force" in driver.lines()[-1]
        await driver.press("v")
        assert not any(isinstance(command, Answer) for command in driver.sent)
        assert "a accepts it" in driver.lines()[-1]


async def test_a_key_is_not_offered_for_what_a_rule_forbids(drive: Drive) -> None:
    changes = {"default": "apart", "rule": "domain", "forbidden": (forbidden(),)}
    async with drive(asked=changes) as driver:
        await driver.press("d")
        assert "f force   rule domain forbids it" in driver.text()
        assert "force" not in driver.lines()[-1]


async def test_keys_about_overrides_stand_only_where_there_are_some(drive: Drive) -> None:
    async with drive(size=(220, 40)) as driver:
        await driver.press("d", "a", "c")
        await driver.until(lambda: driver.bench.state == "finished")
        await driver.press("j")
        for words in ("K keep overrides", "u undo", "W write"):
            assert words not in driver.lines()[-1]
        driver.bench.overriding.history.wanted[FUSE] = APART
        driver.bench.overriding.show()
        driver.bench.refresh_all()
        await driver.settle()
        assert "K keep overrides  u undo  W write" in driver.lines()[-1]
        await driver.press("K", "j")
        assert "keep overrides" not in driver.lines()[-1]
        assert "u undo  W write" in driver.lines()[-1]
