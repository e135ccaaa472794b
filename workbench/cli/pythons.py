"""Other interpreters, each with a torch of its own, for one side of a comparison."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

_PROBE = """\
import sys
if sys.version_info < (3, 11):
    sys.exit("it is Python %d.%d: tcw needs 3.11" % sys.version_info[:2])
import importlib.metadata as installed
for name in ("torch", "msgspec"):
    try:
        print(installed.version(name))
    except installed.PackageNotFoundError:
        sys.exit(f"it has no {name}: {sys.executable} -m pip install {name}")
"""
_SECONDS = 30.0


def torch_of(python: Path) -> str:
    """The version of torch that the interpreter has, as installed. Raises `click.UsageError` if no
    model can be recorded with it: tcw's worker, started by its file, needs torch and msgspec."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE],
            capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise click.UsageError(f"{python} did not answer in {_SECONDS:g} s") from error
    except OSError as error:
        raise click.UsageError(f"{python} does not start: {error.strerror}") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise click.UsageError(f"{python} cannot record a model: {why}")
    return done.stdout.split()[0]
