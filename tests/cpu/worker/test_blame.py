"""Who is blamed: the machine, the user, torch or tcw, as a user of the command line reads it."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.command_line import Done, tcw, tcw_process

MODEL = """
import torch

def model(x):
    return torch.relu(x) + 1

example_inputs = (torch.randn(400, 400),)
"""


def explained(
    folder: Path,
    text: str = MODEL,
    *options: str,
    command: Callable[..., Done] = tcw,
    **more: Any,
) -> Done:
    """`tcw explain`, run by `command` with `more`."""
    (folder / "model.py").write_text(text)
    return command(folder, "explain", "model.py", "--quiet", *options, **more)


def test_a_model_that_closes_its_output_is_measured(tmp_path: Path) -> None:
    text = "import os\nos.close(1)\nos.close(2)\n" + MODEL
    code, out, _ = explained(tmp_path, text, "--engine", "tcw")
    assert code == 0, out
    assert "results equal bit for bit" in " ".join(out.split())


def test_a_model_that_closes_every_file_is_told_so(tmp_path: Path) -> None:
    text = "import os\nos.closerange(3, 1024)\n" + MODEL
    code, out, _ = explained(tmp_path, text, "--engine", "tcw")
    assert code == 3
    assert "closed the recording's files" in out
    assert "bug in tcw" not in out


@pytest.mark.long
@pytest.mark.parametrize(
    ("environment", "line", "hint"),
    [
        ({"PYTHONWARNINGS": "error"}, "is deprecated", "PYTHONWARNINGS"),
        (
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            "'ascii' codec can't decode byte",
            "PYTHONUTF8=1",
        ),
    ],
)
def test_what_torch_raises_by_itself_is_torchs(
    tmp_path: Path, environment: dict[str, str], line: str, hint: str
) -> None:
    """torch 2.13 does; where a torch does not, there is nothing to blame."""
    code, out, _ = explained(
        tmp_path, MODEL, "--until", "capture", command=tcw_process, **environment
    )
    assert "bug in tcw" not in out
    if code:
        assert code == 3
        assert "torch itself raises this" in out
        assert line in out
        assert hint in out


@pytest.mark.long
def test_an_ascii_output_is_no_fault(tmp_path: Path) -> None:
    code, out, _ = explained(
        tmp_path, MODEL, "--until", "capture", command=tcw_process, PYTHONIOENCODING="ascii"
    )
    assert code == 0
    assert out.isascii()


@pytest.mark.parametrize("gigabytes", [0.1, 0.4, pytest.param(0.8, marks=pytest.mark.long)])
def test_a_limit_of_memory_is_the_machines(tmp_path: Path, gigabytes: float) -> None:
    def limit() -> None:
        most = int(gigabytes * (1 << 30))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    code, out, err = explained(
        tmp_path, MODEL, "--engine", "tcw", command=tcw_process, limits=limit
    )
    assert "bug in tcw" not in out + err
    assert "torch.compile is the cause" not in out
    if code:
        assert "machine is the cause" in out + err
        assert code == 7


def test_a_full_disk_is_the_machines_and_its_line_is_shown(tmp_path: Path) -> None:
    """A compiler whose disk is full, behind a command line of many lines."""
    compiler = tmp_path / "g++"
    compiler.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--version*|*-dump*) exec /usr/bin/g++ "$@";; esac\n'
        "echo 'fatal error: when writing output to /tmp/x.s: No space left on device' >&2\n"
        "exit 1\n"
    )
    compiler.chmod(0o755)
    for engine in ("inductor", "tcw"):
        code, out, err = explained(tmp_path, MODEL, "--engine", engine, CXX=str(compiler))
        said = out + err
        assert "torch.compile is the cause" not in said
        assert "No space left on device" in " ".join(said.split()), (engine, said)
        if engine == "inductor":
            assert code == 7
            assert "The machine is the cause" in said


def test_no_compiler_is_the_machines(tmp_path: Path) -> None:
    code, out, _ = explained(tmp_path, MODEL, CXX="/nonexistent/g++")
    assert code == 7, out
    assert "The machine is the cause" in out
    assert "install g++" in out


def test_the_users_own_words_blame_nobody(tmp_path: Path) -> None:
    text = MODEL.replace(
        "return", "raise RuntimeError('out of memory, says my own pool')\n    return"
    )
    code, out, _ = explained(tmp_path, text, "--engine", "tcw")
    assert code == 3
    assert "machine is the cause" not in out
    assert "Eager fails too" in out


@pytest.mark.long
def test_a_temporary_folder_that_cannot_be_written_is_no_internal_error(tmp_path: Path) -> None:
    """Another one is used, or the machine is blamed; never tcw."""
    code, out, err = explained(
        tmp_path, MODEL, "--engine", "tcw", command=tcw_process, TMPDIR=str(tmp_path / "nowhere")
    )
    assert "internal error" not in err
    assert code in (0, 7), out + err
