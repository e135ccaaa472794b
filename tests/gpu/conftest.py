from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from viewers.recording import Recording

ROOT = Path(__file__).parents[2]

Explain = Callable[..., Recording]


@pytest.fixture(autouse=True, scope="session")
def gpu() -> None:
    """All tests of this folder run models on a GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    return


@pytest.fixture
def explain(tmp_path: Path) -> Explain:
    """`tcw explain` on the text of a model file, in a process of its own."""

    def recorded(text: str, *options: str, hidden: bool = False) -> Recording:
        file, trace = tmp_path / "model.py", tmp_path / "trace.tcw"
        file.write_text(text, encoding="utf-8")
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""} if hidden else dict(os.environ)
        command = [sys.executable, str(ROOT / "tcw.py"), "explain", str(file), "--quiet"]
        done = subprocess.run(
            [*command, "--trace", str(trace), *options],
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return Recording.open(trace)

    return recorded
