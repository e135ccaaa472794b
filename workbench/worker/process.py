"""The worker's main: dispatch, the protocol, and an end record in every case."""

from __future__ import annotations

import os
import sys

from tcw.workbench.worker.guardian import die_with, fork_worker
from tcw.workbench.worker.pipes import Pipes


def run(argv: list[str]) -> None:
    """Do what the front end started this process for: `record CACHES PIPES…`, `doctor`, or `guarded
    CACHES LIFELINE STATUS`."""
    verb, *rest = argv or [""]
    if verb == "record":
        caches, *numbers = rest
        pipes = Pipes(*map(int, numbers))
        pipes.keep_from_children()
        # The fork comes first: whatever the worker starts later has a guardian above it.
        fork_worker(pipes.lifeline, pipes.status, caches)
        from tcw.workbench.worker.recording import record

        record(pipes)
    elif verb == "guarded":
        from tcw.workbench.worker import guarded

        guarded.run(rest)
    elif verb == "doctor":
        die_with(os.getppid())
        from tcw.workbench.worker.doctor import report

        report()
    else:
        sys.stderr.write(f"the worker knows no {verb!r}\n")
        os._exit(2)
