"""What the front end tells the worker. No torch."""

from __future__ import annotations

import signal

from compiler.trace.records import Part, Settings

DUMP_SIGNAL = signal.SIGRTMAX - 2
"""Makes the worker's main thread write where it is; a number that programs do not use."""


class Job(Part):
    """The first line of the command pipe."""

    settings: Settings
    started: float
    """Start of the recording on the monotonic clock, which all processes share."""
