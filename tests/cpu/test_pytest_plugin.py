"""The pytest plugin in a test run of its own, as a project has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = """\
import pytest
import torch


def softmax(x):
    return torch.softmax(x + 1, -1)


def printing(x):
    y = x.sin()
    print("here")
    return y.cos()


@pytest.fixture
def x():
    return torch.randn(4, 8)


@pytest.mark.tcw(graphs=1, breaks=0, recompiles=0, max_kernels=1, fused=["softmax + add"])
def test_fused(x):
    torch.compile(softmax, backend="tcw")(x)


@pytest.mark.tcw(breaks=0)
def test_break(x):
    torch.compile(printing, backend="tcw")(x)


@pytest.mark.tcw(recompiles=0, fused="softmax + sin")
def test_recompile():
    compiled = torch.compile(softmax, backend="tcw")
    compiled(torch.randn(4, 8))
    compiled(torch.randn(5, 8))


@pytest.mark.tcw(kernel=1)
def test_unknown(x):
    pass


def test_by_hand(tcw_recording, x):
    torch.compile(printing, backend="tcw")(x)
    (found,) = tcw_recording.breaks
    assert found.place.line == 11
    assert tcw_recording.graphs == 2
    assert tcw_recording.findings
    assert not tcw_recording.fused("softmax")


def test_by_hand_fails(tcw_recording, x):
    torch.compile(printing, backend="tcw")(x)
    assert not tcw_recording.breaks


@pytest.mark.tcw(graphs=1)
class TestClass:
    def test_method(self, x):
        torch.compile(softmax, backend="tcw")(x)

    @pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
    def test_its_own_failure_is_told(self, x):
        1 / 0
"""
UNUSED = """\
import sys


def test_nothing_of_tcw_is_imported():
    late = ("tcw.compiler", "tcw.viewers", "tcw.workbench", "msgspec", "torch")
    assert [name for name in sys.modules if name.startswith(late)] == []
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tcw.pytest_plugin", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_project(tmp_path: Path) -> None:
    done = run(tmp_path, PROJECT)
    out = done.stdout
    assert "4 failed, 3 passed, 1 xfailed" in out, out
    of_the_fixture = out.partition("_ test_by_hand_fails _")[2]
    assert "test_it.py:11" in of_the_fixture, "a failure by hand has the report, too"
    assert "graph breaks: 1, expected 0" in out
    assert "test_it.py:11" in out, "the finding names its line"
    assert "cut off" not in out
    assert "idea  " in out
    assert "recompiles: 1, expected 0" in out
    assert "not in one kernel: softmax + sin" in out
    assert "x.size(0) 4 → 5" in out
    assert "the tcw marker has no 'kernel'" in out
    assert "Traceback" not in out


def test_unused_it_imports_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, UNUSED)
    assert done.returncode == 0, done.stdout
