"""Diffs of what trials edit, the patch of what was kept, and which trial that is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.trace.records import Settings, Timed, Trial
from tcw.viewers.summary.profile.causes.cause import TOGETHER, best_of_groups, chosen
from tcw.workbench.cli.edits import source_diff, write_patch
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request import codes

TEXT = "def model(x):\n    print(x)\n    return x\n"
EDITED = "def model(x):\n    pass\n    return x\n"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(TEXT)
    return Settings(file=str(tmp_path / "model.py"))


def trial(id: str, difference: float, group: str = "", diff: str = "", noise: float = 0.1) -> Trial:
    timed = Timed(median=1.0, spread=0.01, runs=9)
    return Trial(
        id=id, words=id, group=group, diff=diff, before=timed, after=timed, difference=difference,
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
        "no call statement or assertion is on that line"
        in source_diff(base, structs.replace(base, edits=("drop:3",))).reason
    )


def test_a_file_that_is_gone_is_said(base: Settings) -> None:
    Path(base.file).unlink()
    found = source_diff(base, structs.replace(base, edits=("drop:2",)))
    assert found.reason.startswith("the source cannot be read")


def kept_of(base: Settings, *edits: str) -> Trial:
    """A trial of these edits that was kept."""
    options = tuple(word for edit in edits for word in ("--edit", edit))
    text = source_diff(base, structs.replace(base, edits=(*base.edits, *edits))).text
    assert text
    return structs.replace(trial("fast", -1.0, diff=text), options=options)


Said = Callable[[], str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """The last line on stderr."""
    return lambda: capsys.readouterr().err.rstrip().rpartition("\n")[2]


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("name", ["kept.patch", "my 'kept' $(patch)"])
def test_the_patch_does_what_was_kept(
    base: Settings,
    tmp_path: Path,
    elsewhere: bool,
    name: str,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if elsewhere:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
    patch = tmp_path / name
    outputs = Outputs(base)
    write_patch(outputs, patch, base, [trial("slow", 0.0), kept_of(base, "drop:2")])
    line = said()
    assert outputs.code(codes.OK) == codes.OK
    assert ("-d /" in line) is elsewhere
    command = line.partition("apply it with: ")[2]
    subprocess.run(command.replace("patch ", "patch -s ", 1), shell=True, check=True)
    assert Path(base.file).read_text() == EDITED


def test_a_patch_of_several_files_is_applied_in_one_folder(
    base: Settings, tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "part.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path / "inner")
    kept = kept_of(base, "drop:2", "drop:inner/part.py:2")
    write_patch(Outputs(base), Path("kept.patch"), base, [kept])
    command = said().partition("apply it with: ")[2]
    subprocess.run(command.replace("patch ", "patch -s ", 1), shell=True, check=True)
    assert Path(base.file).read_text() == Path("part.py").read_text() == EDITED


def test_a_patch_applies_to_the_file_as_it_is_not_as_it_was_run(
    base: Settings, tmp_path: Path
) -> None:
    """`--edit` changes what is run: a patch for the file on disk has that edit, too."""
    Path(base.file).write_text("def model(x):\n    print(1)\n    print(2)\n    return x\n")
    given = structs.replace(base, edits=("drop:2",))
    write_patch(Outputs(given), tmp_path / "kept.patch", given, [kept_of(given, "drop:3")])
    subprocess.run(["patch", "-p1", "-s", "-i", "kept.patch"], cwd=tmp_path, check=True)
    assert Path(base.file).read_text() == "def model(x):\n    pass\n    pass\n    return x\n"


def test_a_source_that_changed_meanwhile_is_not_patched(
    base: Settings, tmp_path: Path, said: Said
) -> None:
    kept = kept_of(base, "drop:2")
    Path(base.file).write_text(TEXT.replace("print(x)", "print(x, 1)"))
    outputs = Outputs(base)
    write_patch(outputs, tmp_path / "kept.patch", base, [kept])
    assert "has changed since" in said()
    assert outputs.code(codes.OK) == codes.UNWRITTEN
    assert not (tmp_path / "kept.patch").exists()


def test_the_text_of_a_record_is_not_what_is_written(
    base: Settings, tmp_path: Path, said: Said
) -> None:
    kept = kept_of(base, "drop:2")
    victim = "--- a/victim.py\n+++ b/victim.py\n@@ -1 +1 @@\n-safe\n+owned\n"
    forged = structs.replace(kept, diff=kept.diff + victim)
    write_patch(Outputs(base), tmp_path / "kept.patch", base, [forged])
    assert "was not written" in said()
    assert not (tmp_path / "kept.patch").exists()


def test_no_patch_is_written_where_no_edit_was_kept(
    base: Settings, tmp_path: Path, said: Said
) -> None:
    patch = tmp_path / "kept.patch"
    write_patch(Outputs(base), patch, base, [])
    assert "nothing was kept" in said()
    write_patch(Outputs(base), patch, base, [trial("mode", -1.0)])
    assert "changes the source" in said()
    assert not patch.exists()


def test_a_name_that_no_patch_carries_has_no_diff(base: Settings, tmp_path: Path) -> None:
    name = tmp_path / "a\n--- a" / "victim.py"
    name.parent.mkdir()
    name.write_text(TEXT)
    found = source_diff(base, structs.replace(base, edits=("drop:a\n--- a/victim.py:2",)))
    assert found.text == ""
    assert "cannot carry" in found.reason


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
