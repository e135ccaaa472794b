"""Diffs of what trials edit, the patch of what was kept, and which trial that is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec import structs

from compiler.trace.records import Settings, Timed, Trial
from viewers.summary.profile.tried import TOGETHER, best_of_groups, chosen
from workbench.cli.edits import source_diff, write_patch

TEXT = "def model(x):\n    print(x)\n    return x\n"
EDITED = "def model(x):\n    pass\n    return x\n"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(TEXT)
    return Settings(file=str(tmp_path / "model.py"))


def trial(id: str, difference: float, group: str = "", diff: str = "", noise: float = 0.1) -> Trial:
    one = Timed(median=1.0, spread=0.01, runs=9)
    return Trial(
        id=id, words=id, group=group, diff=diff, before=one, after=one, difference=difference,
        noise=noise, kept=True, command=f"tcw {id}",
    )  # fmt: skip


def test_a_diff_is_that_of_the_edits_alone(base: Settings) -> None:
    edited = structs.replace(base, edits=("drop:2",))
    assert source_diff(base, base).text == ""
    found = source_diff(base, edited)
    assert found.text.startswith("--- a/model.py\n+++ b/model.py\n@@ -1,3 +1,3 @@\n")
    assert "-    print(x)\n+    pass\n" in found.text
    assert source_diff(edited, edited).text == ""
    assert (
        "no call of its own" in source_diff(base, structs.replace(base, edits=("drop:3",))).reason
    )


def test_a_file_that_is_gone_is_said(base: Settings) -> None:
    Path(base.file).unlink()
    found = source_diff(base, structs.replace(base, edits=("drop:2",)))
    assert found.reason.startswith("the source cannot be read")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_patch_does_what_was_kept(
    base: Settings, tmp_path: Path, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if elsewhere:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
    diff = source_diff(base, structs.replace(base, edits=("drop:2",))).text
    patch = tmp_path / "kept.patch"
    said = write_patch(patch, [trial("slow", 0.0), trial("fast", -1.0, diff=diff)])
    assert ("-d /" in said) is elsewhere
    command = said.partition(": ")[2]
    subprocess.run(command.replace("patch ", "patch -s "), shell=True, check=True)
    assert Path(base.file).read_text() == EDITED


def test_no_patch_is_written_where_no_edit_was_kept(tmp_path: Path) -> None:
    patch = tmp_path / "kept.patch"
    assert "nothing was kept" in write_patch(patch, [])
    assert "changes no source" in write_patch(patch, [trial("mode", -1.0)])
    assert not patch.exists()


def test_of_a_group_what_changes_least_is_asked_for_within_the_noise() -> None:
    setting, drop = trial("set", -1.0, "break"), trial("drop", -1.05, "break")
    faster = trial("later", -1.5, "break")
    mode = trial("mode", -0.5)
    assert best_of_groups([mode, setting, drop]) == [setting, mode]
    assert best_of_groups([setting, drop, faster]) == [faster]
    assert chosen([mode, setting, drop]) == setting
    together = trial(TOGETHER, -1.2)
    assert chosen([setting, mode, together]) == together
    assert chosen([structs.replace(setting, kept=False)]) is None
