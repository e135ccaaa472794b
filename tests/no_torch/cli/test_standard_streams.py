"""Standard streams that are closed, full, or without a reader: what still comes, and the exit code.

Each command runs in a process of its own, behind a shell that redirects.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tcw.workbench.request import codes
from tests.long import mostly_long

ROOT = Path(__file__).parents[3]

STUB = """
import os, sys
from pathlib import Path
from types import ModuleType
sys.path.insert(0, {root!r})
from tests.no_torch import profiles, traces
from tcw.workbench.worker.trace_file import TraceFile
module = ModuleType("tcw.workbench.worker.client")
def record(settings, trace, on_record, then=None, tries=None, python=""):
    file = TraceFile(trace, on_record)
    made = profiles.masked_attention() if settings.profile else traces.clean()
    for one in made:
        file.emit(one)
    file.close()
    return made[-1]
module.record = record
import tcw.workbench.worker
tcw.workbench.worker.client = sys.modules["tcw.workbench.worker.client"] = module
import tcw.workbench.cli.doctor
from tcw.workbench.worker.findings import Findings
tcw.workbench.cli.doctor.ask_worker = lambda: Findings(python="3", torch_fault="none here")
checks = tcw.workbench.cli.doctor.checks
tcw.workbench.cli.doctor.checks = lambda *found: checks(*found)[:1]  # free space changes
from tcw.workbench.cli import run
run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text("model = 1\n")
    (tmp_path / "stub.py").write_text(STUB.format(root=str(ROOT)))
    return tmp_path


def shell(folder: Path, words: str, redirected: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} stub.py {words} {redirected}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**environment, "COLUMNS": "100"},
        timeout=120,
        check=False,
    )


EVERY = {
    "explain model.py": codes.OK,
    "profile model.py --json": codes.OK,
    "doctor": codes.FINDING,
    "--help": codes.OK,
    "explain gone.py --json": codes.USAGE,
    "open model.py": codes.USAGE,
}
FULL = "tcw: stdout could not be written: No space left on device\n"


@pytest.mark.parametrize(
    "words", mostly_long(EVERY, ("profile model.py --json", "doctor", "explain gone.py --json"))
)
def test_a_stream_that_is_closed_full_or_not_read_changes_nothing_but_itself(
    words: str, folder: Path
) -> None:
    whole, code = shell(folder, words, "</dev/null"), EVERY[words]
    assert whole.returncode == code
    out, err = whole.stdout, whole.stderr
    unwritten = codes.unwritten(code) if out else code
    for redirected, expected in {
        "<&-": (code, out, err),
        "2>&-": (code, out, ""),
        ">&-": (code, "", err),
        "<&- >&- 2>&-": (code, "", ""),
        ">/dev/full": (unwritten, "", err + (FULL if out else "")),
        "2>/dev/full": (code, out, ""),
        "| true": (code, "", err),
    }.items():
        found = shell(folder, words, redirected)
        assert (found.returncode, found.stdout, found.stderr) == expected, redirected


@pytest.mark.parametrize("redirected", [">/dev/full", "<&- >&- 2>&-"])
def test_files_are_written_all_the_same(redirected: str, folder: Path) -> None:
    """And hold nothing but what is theirs: none of them got the number of a closed stream."""
    shell(folder, "profile model.py --trace a.tcw --chrome a.json --quiet", "</dev/null")
    shell(folder, "profile model.py --trace b.tcw --chrome b.json --quiet", redirected)
    assert json.loads((folder / "b.json").read_text())["traceEvents"]
    assert (folder / "b.json").read_text() == (folder / "a.json").read_text()
    lines = (folder / "b.tcw").read_text().splitlines()
    assert len(lines) == len((folder / "a.tcw").read_text().splitlines())
    assert all(json.loads(line)["record"] for line in lines)


def test_a_stdout_that_is_not_open_for_writing_is_said(folder: Path) -> None:
    found = shell(folder, "explain model.py", "1<stub.py")
    assert found.stderr == "tcw: stdout could not be written: Bad file descriptor\n"
    assert found.returncode == codes.UNWRITTEN


def test_a_pipe_that_does_not_block_gets_all_of_it(folder: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with subprocess.Popen(
        [sys.executable, "stub.py", "profile", "model.py", "--json"], cwd=folder, stdout=write
    ) as process:
        os.close(write)
        with os.fdopen(read, "rb") as stream:
            assert json.loads(stream.read())["status"] == "ok"
    assert process.returncode == codes.OK


def test_json_fits_the_encoding_of_stdout(folder: Path) -> None:
    (folder / "größe.py").write_text("model = 1\n")
    whole = shell(folder, "explain gone_größe.py --json", "</dev/null")
    process = subprocess.run(
        [sys.executable, "stub.py", "explain", "gone_größe.py", "--json"],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert json.loads(process.stdout.decode("ascii")) == json.loads(whole.stdout)
    assert process.returncode == codes.USAGE
