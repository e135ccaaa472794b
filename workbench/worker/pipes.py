"""The worker's pipes, by descriptor number. Imports nothing large: the guardian starts with it."""

from __future__ import annotations

import os
from typing import NamedTuple


class Pipes(NamedTuple):
    """The worker's end of each pipe, in the order of its command line."""

    commands: int
    """Read: the job as one line of JSON, then commands."""
    records: int
    """Written: the record stream, as in the trace file, and the end record."""
    faults: int
    """Written by faulthandler: where the process was when it died or was asked."""
    lifeline: int
    """Read by the guardian: closed when the front end is gone or wants an end."""
    status: int
    """Written by the guardian: the worker's wait status."""
    trace: int
    """The trace file, opened for appending; -1 for none."""

    def keep_from_children(self) -> None:
        """Close them in programs that the user's file starts."""
        for number in (self.commands, self.records, self.faults, self.trace):
            if number >= 0:
                os.set_inheritable(number, False)
