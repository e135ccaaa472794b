"""How a process ends: with its output flushed, and with the place if the user's code ends it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from tcw.compiler.control.describe import describe
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.trace.records import Failure, Location
from tcw.workbench.worker.blame import source_line

RECORDS_CLOSED = 83
"""Status of a worker that can write no more records: the user's program closed its pipe."""

leave = os._exit
"""Ends this process at once, without waiting for threads or running exit handlers."""


def wait_for_end(number: int) -> None:
    """Wait until no process has the other end of this pipe."""
    with contextlib.suppress(OSError):
        while os.read(number, 4096):
            pass


def flush_output() -> None:
    """Flush stdout and stderr, of Python and of C."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the user may have replaced or closed it
            stream.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)


def watch_os_exit(recorder: Recorder) -> Callable[[], None]:
    """Record where the user's code calls `os._exit`, which leaves no other trace. Returns the undo.
    Forked children use it as well; they are not watched."""
    process = os.getpid()

    def _exit(status: int) -> NoReturn:
        if os.getpid() == process:
            caller = sys._getframe(1)
            place = Location(
                file=caller.f_code.co_filename, line=caller.f_lineno, function=caller.f_code.co_name
            )
            recorder.emit(
                Failure(
                    doing="running the user's code",
                    type="os._exit",
                    message=f"the program ended itself: os._exit({describe(status)})",
                    location=place,
                    source_line=source_line(place),
                )
            )
            flush_output()
        leave(status)

    os._exit = _exit

    def undo() -> None:
        if os._exit is _exit:
            os._exit = leave

    return undo
