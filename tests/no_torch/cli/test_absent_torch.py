"""A verb that records, where torch is not installed: it says in one line what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tcw.workbench.request import codes
from tests.no_torch.cli.test_commands import ROOT
from tests.no_torch.tui.test_without_torch import ABSENT


@pytest.mark.parametrize("verb", ["explain", "profile"])
def test_it_says_what_to_install(verb: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(ABSENT))
    model = tmp_path / "model.py"
    model.write_text("import torch\n")
    done = subprocess.run(
        [sys.executable, "-m", "tcw", verb, str(model)],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = " ".join((done.stdout + done.stderr).split())
    absent = f"torch is not installed in {sys.executable}"
    assert f"{absent}: pip install 'torch-compile-workbench[torch]'" in said
    assert done.returncode == codes.MODEL_FAILED
