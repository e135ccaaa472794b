"""Runs of the model that are the tool's own: not recorded, and what they print is not shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from compiler.control.recorder import Recorder
from workbench.worker.exits import flush_output


@contextmanager
def unrecorded(recorder: Recorder) -> Iterator[None]:
    """Hooks stay quiet, and stdout and stderr go nowhere: the user's program did not run here."""
    flush_output()
    saved = [os.dup(number) for number in (1, 2)]
    null = os.open(os.devnull, os.O_WRONLY)
    before, recorder.quiet = recorder.quiet, True
    try:
        for number in (1, 2):
            os.dup2(null, number)
        yield
    finally:
        flush_output()
        for number, original in zip((1, 2), saved, strict=True):
            os.dup2(original, number)
            os.close(original)
        os.close(null)
        recorder.quiet = before
