"""`tcw` with arguments, as a user types it: in this process, or as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tcw.workbench import DOOR
from tcw.workbench.cli.main import main

ROOT = Path(__file__).parents[2]
SECONDS = 570.0


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Its output on one line, however it was wrapped."""
        return " ".join(self.out.split())


def tcw(folder: Path, *arguments: str, **environment: str) -> Done:
    """Run the command in this process, in `folder`; its workers are those of the tests, which are
    forked where they can be."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        mock.patch.dict(os.environ, environment),
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(list(arguments))
    return Done(code, *(_written(one) for one in (out, err)))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def tcw_process(
    folder: Path,
    *arguments: str,
    limits: Callable[[], None] | None = None,
    **environment: str,
) -> Done:
    """Run the command as a new process, for what a process inherits or imports.

    `limits` is called in it before it begins.
    """
    done = subprocess.run(
        [sys.executable, DOOR, *arguments],
        capture_output=True,
        cwd=folder,
        env={**os.environ, **environment},
        preexec_fn=limits,
        stdin=subprocess.DEVNULL,
        timeout=SECONDS,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
