"""`tcw step` as a person uses it, in a terminal: a fusion overruled, measured, replayed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcw.compiler.trace.records import (
    Settings,
)
from tcw.compiler.trace.records.session import Engine
from tcw.viewers.recording import Recording
from tcw.workbench.tui.overriding import to_toml
from tcw.workbench.worker.client import record
from tests.cpu.command_line import ROOT, tcw
from tests.cpu.step.terminal import needs_tmux, terminal
from tests.cpu.worker.driven import person, written
from tests.decided import asked_in

SMALL = (
    ("model = GPT()", "model = GPT(width=16, heads=2, vocabulary=32, context=8)"),
    ("torch.randint(0, 1000, (2, 128))", "torch.randint(0, 32, (2, 8))"),
)
VERDICT = r"The veto is (faster|slower)|No measurable difference"
COST = r"[\d.]+ → [\d.]+ [mµ]s +[+-][\d.]+ [mµ]s ±[\d.]+.*\d+ pairs, kernels? alone, warm caches"


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transformer of four layers, as small as it gets."""
    text = (ROOT / "sample_models" / "gpt.py").read_text()
    for before, after in SMALL:
        assert before in text
        text = text.replace(before, after)
    file = tmp_path_factory.mktemp("acceptance") / "gpt.py"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every cache of ours and of torch is empty at first."""
    folder = tmp_path_factory.mktemp("cold")
    return {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }


@needs_tmux
@pytest.mark.parametrize(
    ("engine", "rule", "why"),
    [
        ("tcw", "cycle", r"needs one of them, and the other needs "),
        pytest.param(
            "inductor", "between", r"with nodes between +intermediate nodes", marks=pytest.mark.long
        ),
    ],
)
def test_a_fusion_is_refused_another_vetoed_measured_saved_and_replayed(
    engine: str, rule: str, why: str, gpt: Path, cold: dict[str, str]
) -> None:
    folder = gpt.parent
    model = [gpt.name, "--engine", engine, "--no-grad"]
    trace, overrides = folder / f"{engine}.tcw", folder / f"{engine}.toml"
    drive = ["step", *model, "--break", "first-rejection", "--trace", trace.name]
    with terminal(drive, folder, cold) as screen:
        screen.until("before the first step +◆ waiting")
        screen.at("c", r"decision 1 +◆ waiting")
        screen.until(rf"Fuse A and B\?.*{engine}/0/0/inference/fuse/")
        bar = screen.until(why)
        assert f"rule {rule} forbids it" in bar
        refused = screen.at("f", "the decision is still open")
        assert re.search(rf"✗ fuse refused: rule {rule}: \w+", refused)

        number = 1
        while not re.search(r"choice: fuse", screen.screen):
            number += 1
            screen.at("d", rf"decision {number} +◆ waiting")
        vetoed = re.search(rf"{engine}/0/0/inference/fuse/\S+", screen.screen)
        assert vetoed
        screen.at("v", rf"decision {number + 1} +◆ waiting")
        screen.at("c", "■ finished")

        screen.at("w", VERDICT)
        shown = screen.until("✓ the veto holds")
        assert re.search(COST, shown)
        assert re.search(r"│\[\d\] k\d.* C\+\+  base → veto +\+\d+ −\d+ lines", shown)

        screen.at("W", "write overrides to")
        screen.press("C-u")
        screen.type(str(overrides))
        screen.at("Enter", f"wrote {overrides.name}")
        screen.at("q", "left with 0")
    assert overrides.read_text() == to_toml({vetoed[0]: "apart"})
    runs = Recording.open(trace).runs
    assert written(runs[3]) != written(runs[2])
    assert written(replay(model, overrides, folder, cold)) == written(runs[3]) == written(runs[1])


@pytest.mark.long
@pytest.mark.parametrize("engine", ["tcw", "inductor"])
def test_stepping_through_a_training_step_gives_the_same_kernels(engine: Engine, gpt: Path) -> None:
    settings = Settings(file=str(gpt), engine=engine, grad="train", until="codegen")
    alone = Recording()
    record(settings, trace=None, on_record=lambda one: alone.feed([one]))
    with person(settings) as one:
        one.until_end("decision")
    assert any("/backward" in name for name in written(alone))
    assert asked_in(one)
    assert written(Recording(one.records).runs[1]) == written(alone)


def replay(
    model: list[str], overrides: Path, folder: Path, environment: dict[str, str]
) -> Recording:
    """What `tcw explain` records with a file of overrides, from caches that have nothing of it."""
    trace = folder / f"{overrides.stem}-again.tcw"
    overruled = ["--override", str(overrides), "--trace", str(trace)]
    done = tcw(folder, "explain", *model, *overruled, **environment)
    assert done.code == 0, done.err
    return Recording.open(trace)
