"""Runs a cut-out file to see whether it shows the error."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SECONDS = 300.0
_RUN = """
import runpy, sys
from torch._dynamo.backends import registry
from tcw.compiler.engine.backend import backend
registry._COMPILER_FNS.pop("tcw", None)
registry.register_backend(backend, name="tcw")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run."""

    shows: bool | None
    """None if it did not run to its end."""
    words: str
    """Its output, or what went wrong."""


def tried(text: str, seconds: float = SECONDS) -> RunOutcome:
    """Run a file's text in a separate process."""
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    with tempfile.TemporaryDirectory(prefix="tcw-repro-") as folder:
        file = Path(folder) / "repro.py"
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, "-c", _RUN, str(file)],
                capture_output=True,
                text=True,
                timeout=seconds,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return RunOutcome(None, f"it ran for more than {seconds:.0f} s")
    if done.returncode in (0, 1) and done.stdout.startswith("result"):
        return RunOutcome(done.returncode == 1, done.stdout)
    words = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
    return RunOutcome(None, words[-1][:300])
