"""`[tool.tcw]` in the pyproject.toml of the user's project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.no_torch.cli.test_commands import Client, client, model
from workbench.cli import codes
from workbench.cli.main import main

__all__ = ["client", "model"]


def project(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)


def test_defaults_come_from_the_project_of_the_file(
    model: Path,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    project(
        model.parent,
        '[tool.tcw]\ntrain = true\ntimeout = 60\n[tool.tcw.explain]\nmark-dynamic = "x:0"\n',
    )
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(["explain", str(model)]) == codes.OK
    assert client.settings is not None
    assert client.settings.grad == "train"
    assert client.settings.timeout == 60.0
    assert client.settings.mark_dynamic == ("x:0",)


def test_the_command_line_wins(model: Path, client: Client) -> None:
    project(model.parent, '[tool.tcw.explain]\nuntil = "capture"\ndynamic = true\n')
    assert main(["explain", "model.py", "--until", "codegen", "--no-dynamic"]) == codes.OK
    assert client.settings is not None
    assert (client.settings.until, client.settings.dynamic) == ("codegen", False)


def test_sections(model: Path, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    project(model.parent, '[tool.tcw.explain]\nshow = ["guards", "caches"]\n')
    assert main(["explain", "model.py"]) == codes.OK
    out = capsys.readouterr().out
    assert "guards 0/0" in out
    assert "no cache was asked" in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[tool.tcw.explain]\nuntill = "capture"\n', "Did you mean 'until'?"),
        ('[tool.tcw.explain]\nuntil = "lunch"\n', "capture"),
        ("[tool.tcw.explain]\ntimeout = 'soon'\n", "timeout"),
        ("[tool.tcw.explain]\nshow = 3\n", "show"),
        ("[tool.tcw\n", "pyproject.toml"),
        ("[tool]\ntcw = 3\n", "tables"),
    ],
)
def test_mistakes_name_the_file(
    text: str, says: str, model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    project(model.parent, text)
    assert main(["explain", "model.py"]) == codes.USAGE
    said = capsys.readouterr().err
    assert "pyproject.toml" in said
    assert says in said


def test_other_projects_are_left_alone(model: Path, client: Client) -> None:
    project(model.parent, "[tool.black]\nline-length = 3\n")
    assert main(["explain", "model.py"]) == codes.OK
