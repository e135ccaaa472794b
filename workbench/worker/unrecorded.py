"""Runs of the model for tcw's own purposes: not recorded, and their output is dropped."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.measure.host import Host
from tcw.workbench.worker.exits import flush_output


def host_of(recorder: Recorder) -> Host:
    """This process, as measurements use it."""
    return Host(recorder, partial(unrecorded, recorder))


@contextmanager
def unrecorded(recorder: Recorder) -> Iterator[None]:
    """Silence hooks, stdout and stderr: the user's program does not run here."""
    flush_output()
    saved = {number: _aside(number) for number in (1, 2)}
    before, recorder.quiet = recorder.quiet, True
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        for number in saved:
            os.dup2(null, number)
        if null not in saved:
            os.close(null)
        yield
    finally:
        flush_output()
        for number, original in saved.items():
            if original is None:
                os.close(number)
            else:
                os.dup2(original, number)
                os.close(original)
        recorder.quiet = before


def _aside(number: int) -> int | None:
    """A copy of a descriptor above the standard ones; None if the user has closed it."""
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:
        return None
