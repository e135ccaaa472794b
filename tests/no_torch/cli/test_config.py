"""`[tool.tcw]` in the pyproject.toml of the user's project."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

import click
import pytest

from tcw.workbench.cli.main import main
from tcw.workbench.request import codes, config
from tcw.workbench.request.config import COMMAND_LINE_ONLY
from tests.no_torch import traces
from tests.no_torch.cli.test_commands import Client, client, model

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
    assert "no cache was queried" in out


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


# Whose file it is


def test_the_file_that_was_used_is_named(
    model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    project(model.parent, "[tool.tcw]\ntrain = true\n")
    (model.parent / "models").mkdir()
    file = model.parent / "models" / "model.py"
    file.write_text("model = 1\n")
    assert main(["explain", str(file)]) == codes.OK
    assert client.settings is not None
    assert client.settings.defaults_from == str(model.parent / "pyproject.toml")
    capsys.readouterr()
    client.records = traces.opening(client.settings)
    client.records.append(traces.end())
    main(["explain", str(file)])
    assert "defaults from ../pyproject.toml" in capsys.readouterr().out
    main(["explain", str(file), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["defaults_from"] == str(model.parent / "pyproject.toml")


def test_one_that_set_nothing_is_not_named(model: Path, client: Client) -> None:
    project(model.parent, "[tool.tcw]\ntrain = true\n")
    assert main(["explain", "model.py", "--train"]) == codes.OK
    assert client.settings is not None
    assert client.settings.defaults_from == ""


RUNS = "__import__('os').system('touch ran')"
FORBIDDEN = {
    "model": RUNS,
    "edit": "drop:1",
    "edits": ["drop:1"],
    "set": "torch._inductor.config.cpp.cxx = ('./cxx',)",
    "torch-settings": ["capture_scalar_outputs = True"],
    "torch_settings": ["capture_scalar_outputs = True"],
    "override": "overrides.toml",
    "trace": "victim",
    "chrome": "victim",
    "patch": "victim",
    "output": "victim",
    "o": "victim",
}


@pytest.mark.parametrize("table", ["tool.tcw", "tool.tcw.profile"])
@pytest.mark.parametrize("key", FORBIDDEN)
def test_code_and_files_are_for_the_command_line_alone(
    key: str, table: str, model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    project(model.parent, f"[{table}]\n{key} = {json.dumps(FORBIDDEN[key])}\n")
    assert main(["profile", "model.py"]) == codes.USAGE
    said = capsys.readouterr().err
    assert f"{model.parent / 'pyproject.toml'}: {key} can only be given on the command line" in said
    assert client.settings is None


@pytest.mark.parametrize("verb", ["explain", "profile", "step", "repro"])
def test_no_option_that_names_a_file_is_for_projects(verb: str) -> None:
    command = import_module(f"tcw.workbench.cli.{verb}").command
    files = {
        name.lstrip("-")
        for param in command.params
        if isinstance(param, click.Option) and isinstance(param.type, click.Path)
        for name in (param.name or "", *param.opts)
    }
    assert files <= COMMAND_LINE_ONLY


def test_keys_are_named_as_on_the_command_line(model: Path, client: Client) -> None:
    project(model.parent, '[tool.tcw.explain]\nas-tensor = ["scale"]\n')
    assert main(["explain", "model.py"]) == codes.OK
    assert client.settings is not None
    assert client.settings.as_tensors == ("scale",)


def of_another(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `file` be another user's, who is root where we are not."""
    found = file.lstat()
    other = os.stat_result((*found[:4], found.st_uid + 1, *found[5:]))
    fstat, lstat = os.fstat, os.lstat

    def of(one: os.stat_result) -> os.stat_result:
        return other if (one.st_dev, one.st_ino) == (found.st_dev, found.st_ino) else one

    monkeypatch.setattr(config.os, "fstat", lambda number: of(fstat(number)))
    monkeypatch.setattr(config.os, "lstat", lambda path: of(lstat(path)))


def untrusted(
    model: Path, client: Client, capsys: pytest.CaptureFixture[str], *arguments: str
) -> str:
    """Why the defaults were not used."""
    assert main(["explain", str(model), *arguments]) == codes.OK
    assert client.settings is not None
    assert client.settings.grad == "grad"
    assert client.settings.defaults_from == ""
    return capsys.readouterr().err


TRAINS = "[tool.tcw]\ntrain = true\n"


def test_another_users_file_is_not_read(
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project(model.parent, TRAINS)
    file = model.parent / "pyproject.toml"
    of_another(file, monkeypatch)
    (line,) = untrusted(model, client, capsys).splitlines()
    assert line == (f"tcw: {file} belongs to user {os.geteuid() + 1}; its [tool.tcw] is ignored")


def test_nor_one_in_a_folder_of_theirs_above(
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project(model.parent, TRAINS)
    inner = model.parent / "mine"
    inner.mkdir()
    of_another(model.parent, monkeypatch)
    below = inner / "model.py"
    below.write_text("model = 1\n")
    assert f"is in a folder owned by user {os.geteuid() + 1}" in untrusted(below, client, capsys)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another user")
def test_a_file_that_is_really_another_users(
    model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    project(model.parent, TRAINS)
    os.chown(model.parent / "pyproject.toml", 12345, 12345)
    assert "belongs to user 12345" in untrusted(model, client, capsys)


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o664])
def test_one_that_others_can_write_to_is_not_used(
    mode: int,
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project(model.parent, TRAINS)
    (model.parent / "pyproject.toml").chmod(mode)
    monkeypatch.setattr(config, "_private", lambda group: False)
    assert "is writable by others (chmod go-w)" in untrusted(model, client, capsys)


def test_the_group_of_its_user_alone_may_write(
    model: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(model.parent, TRAINS)
    (model.parent / "pyproject.toml").chmod(0o664)
    monkeypatch.setattr(config, "_private", lambda group: True)
    assert main(["explain", "model.py"]) == codes.OK
    assert client.settings is not None
    assert client.settings.grad == "train"


def test_what_is_no_plain_file_is_not_read(
    model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    file = model.parent / "pyproject.toml"
    os.mkfifo(file)
    assert "not a file" in untrusted(model, client, capsys)
    file.unlink()
    file.mkdir()
    assert "not a file" in untrusted(model, client, capsys)
    file.rmdir()
    (model.parent / "real.toml").write_text(TRAINS)
    file.symlink_to("real.toml")
    assert "is a symbolic link" in untrusted(model, client, capsys)
    file.unlink()
    with file.open("wb") as stream:
        stream.truncate(8 << 30)
    assert "more than 1 MB" in untrusted(model, client, capsys)


@pytest.mark.parametrize("root", [".git", ".hg", "pyproject.toml"])
def test_the_search_ends_at_the_projects_root(
    root: str, model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    project(model.parent, TRAINS)
    inner = model.parent / "project" / "models"
    inner.mkdir(parents=True)
    (inner.parent / root).write_text("")
    file = inner / "model.py"
    file.write_text("model = 1\n")
    assert untrusted(file, client, capsys) == ""


def test_and_at_the_home_folder(
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project(model.parent, TRAINS)
    home = model.parent / "home"
    (home / "models").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    file = home / "models" / "model.py"
    file.write_text("model = 1\n")
    assert untrusted(file, client, capsys) == ""
