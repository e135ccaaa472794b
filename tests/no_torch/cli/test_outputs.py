"""`--trace`, `--chrome` and `--patch`: what is never written over, and that it is said before the
run. Against the real command line; the worker is a stub."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tcw.compiler.trace import output_file
from tcw.viewers.json_text import json_text
from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tcw.workbench.worker.trace_file import TraceFile
from tests.no_torch import profiles
from tests.no_torch.cli.test_commands import Client, client, model  # noqa: F401

OPTIONS = {
    "--trace": ["explain", "model.py"],
    "--chrome": ["profile", "model.py"],
    "--patch": ["profile", "model.py", "--try"],
}
MODEL = "model = 1\n"


@pytest.fixture
def profiled(client: Client) -> Client:  # noqa: F811
    client.records = profiles.masked_attention()
    return client


def by_name(folder: Path) -> str:
    return "model.py"


def by_path(folder: Path) -> str:
    return str(folder / "model.py")


def by_folder(folder: Path) -> str:
    (folder / "linked").symlink_to(folder)
    return "linked/../linked/model.py"


def by_link(folder: Path) -> str:
    (folder / "run.out").symlink_to("model.py")
    return "run.out"


def by_hard_link(folder: Path) -> str:
    os.link(folder / "model.py", folder / "run.out")
    return "run.out"


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("path", [by_name, by_path, by_folder, by_link, by_hard_link])
def test_the_model_is_never_written_over(
    option: str,
    path: Callable[[Path], str],
    profiled: Client,
    model: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*OPTIONS[option], option, path(model.parent)]) == codes.USAGE
    assert profiled.settings is None, "it was found only after the run"
    assert model.read_text() == MODEL
    assert f"tcw: {option} " in capsys.readouterr().err


@pytest.mark.parametrize("option", OPTIONS)
def test_a_model_that_looks_like_an_output_is_not_written_over_either(
    option: str,
    profiled: Client,
    model: Path,  # noqa: F811
) -> None:
    for text in ('{"record":"start"}', json_text({"writer": "tcw profile --chrome"}, 0)):
        model.write_text(text)
        assert main([*OPTIONS[option], option, "model.py"]) == codes.USAGE
        assert model.read_text() == text
    assert profiled.settings is None


@pytest.mark.parametrize("option", OPTIONS)
def test_an_edited_file_is_not_written_over(
    option: str,
    profiled: Client,
    model: Path,  # noqa: F811
) -> None:
    part = model.parent / "part.py"
    part.write_text('{"record":"start"}')
    words = [*OPTIONS[option], "--edit", "drop:part.py:1", option, "part.py"]
    assert main(words) == codes.USAGE
    assert profiled.settings is None


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("what", ["notes", "fifo", "folder", "dangling", "/dev/null", "no/file"])
def test_nothing_else_is_written_over(
    option: str,
    what: str,
    profiled: Client,
    model: Path,  # noqa: F811
) -> None:
    Path("notes").write_text("words")
    os.mkfifo("fifo")
    Path("folder").mkdir()
    Path("dangling").symlink_to("made")
    assert main([*OPTIONS[option], option, what]) == codes.USAGE
    assert profiled.settings is None
    assert Path("notes").read_text() == "words"
    assert not Path("made").exists()


@pytest.mark.parametrize(("one", "other"), [("--trace", "--chrome"), ("--chrome", "--patch")])
def test_two_outputs_share_no_file(
    one: str,
    other: str,
    profiled: Client,
    model: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["profile", "model.py", "--try", one, "out", other, f"../{model.parent.name}/out"]
    assert main(words) == codes.USAGE
    assert f"it is what {one} writes" in capsys.readouterr().err
    assert profiled.settings is None


def test_a_chrome_trace_of_ours_is_written_anew(
    profiled: Client,
    model: Path,  # noqa: F811
) -> None:
    words = ["profile", "model.py", "--chrome", "call.json"]
    assert main(words) == codes.OK
    text = Path("call.json").read_text()
    Path("call.json").write_text(text[: len(text) // 2])
    assert main(words) == codes.OK
    assert Path("call.json").read_text() == text
    assert json.loads(text)["traceEvents"]
    Path("call.json").write_text('{"traceEvents":[]}')
    assert main(words) == codes.USAGE
    assert Path("call.json").read_text() == '{"traceEvents":[]}'
    assert sorted(path.name for path in model.parent.iterdir()) == ["call.json", "model.py"]


def test_the_answer_comes_where_a_file_cannot_be_written_in_the_end(
    profiled: Client,
    model: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    opened = os.open
    monkeypatch.setattr(
        output_file.os,
        "open",
        lambda name, flags, mode=0o777: (
            os.dup(full) if flags & os.O_EXCL else opened(name, flags, mode)
        ),
    )
    code = main(["profile", "model.py", "--json", "--chrome", "call.json"])
    monkeypatch.undo()
    os.close(full)
    said = capsys.readouterr()
    assert code == codes.UNWRITTEN
    assert json.loads(said.out)["status"] == "ok"
    assert said.err == "tcw: --chrome call.json was not written: No space left on device\n"
    assert not Path("call.json").exists()


def test_a_trace_that_another_recording_writes_is_refused(
    model: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the real client: it gets as far as the lock, and starts no worker."""
    file = TraceFile(Path("run.tcw"), lambda record: None)
    try:
        code = main(["explain", "model.py", "--trace", "run.tcw", "--quiet", "--json"])
    finally:
        file.close()
    said = capsys.readouterr()
    assert code == codes.USAGE
    assert json.loads(said.out)["status"] == "usage"
    assert f"another recording is writing to it (process {os.getpid()})" in said.err
    assert msgspec.json.decode(said.out)["error"]["message"].startswith("--trace run.tcw: ")


@pytest.mark.parametrize("verb", ["explain", "profile"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_trace_without_its_end_is_said_and_counts(
    verb: str,
    whole: bool,
    profiled: Client,
    model: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As on a disk that is full: what comes then is only in what is returned."""
    lines = [msgspec.json.encode(record) for record in profiled.records]
    text = b"\n".join(lines if whole else lines[:-1])
    Path("run.tcw").write_bytes(text)
    code = main([verb, "model.py", "--json", "--trace", "run.tcw"])
    said = capsys.readouterr()
    assert json.loads(said.out)["status"] == "ok"
    assert code == (codes.OK if whole else codes.UNWRITTEN)
    assert ("--trace run.tcw is cut off" in said.err) is not whole
