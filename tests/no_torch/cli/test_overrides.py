"""`--override`: a file of choices, or one choice."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tcw.workbench.request.options import machine_options, model_options, settings_of

PARSER = click.command("any")(model_options(machine_options(lambda **_: None)))


def _overrides(*options: str) -> dict[str, str]:
    context = PARSER.make_context("any", list(options))
    return settings_of(context, Path("model.py")).overrides


def test_files_and_single_choices_together(tmp_path: Path) -> None:
    file = tmp_path / "tcw=choices.toml"
    file.write_text('"tcw/0/0/forward/fuse/a+b" = "apart"\n"tcw/0/0/joint/save/x" = "save"\n')
    found = _overrides("--override", str(file), "--override", "tcw/0/0/joint/save/x=recompute")
    assert found == {"tcw/0/0/forward/fuse/a+b": "apart", "tcw/0/0/joint/save/x": "recompute"}


def test_a_file_that_is_named_like_a_choice_is_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tcw"
    folder.mkdir()
    (folder / "a=b").write_text('"inductor/0/0/forward/fuse/a+b" = "apart"\n')
    monkeypatch.chdir(tmp_path)
    assert _overrides("--override", "tcw/a=b") == {"inductor/0/0/forward/fuse/a+b": "apart"}


def test_what_is_neither_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError, match=r"other/0/0/forward/fuse/a\+b=apart"):
        _overrides("--override", "other/0/0/forward/fuse/a+b=apart")
