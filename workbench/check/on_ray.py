"""Targets recorded on a Ray cluster: each is a task on one of its machines.

The machines need the project under the same path, and an environment with tcw, as for any other
program of the cluster. A task receives settings as JSON and returns a trace, which is read as any
trace is; facts are compared here.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from tcw.compiler.protocol.error_words import error_line
from tcw.compiler.trace.records import End, Settings
from tcw.viewers.recording import Recording
from tcw.workbench.check.runs import RecordedTarget, read
from tcw.workbench.request.revisions import at_revision
from tcw.workbench.worker.client import record

_SECONDS = 0.5
"""Seconds between checks whether a task that runs should end."""


class NoRay(Exception):
    """No cluster can be used; the message says what to do."""


class OnRay:
    """Records on a cluster: that of `RAY_ADDRESS`, else one that is started on this machine."""

    def __init__(self, memory: int) -> None:
        """`memory`: bytes that a task may need. Raises `NoRay`."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # without Ray's messages
        try:
            import ray
        except ImportError as error:
            raise NoRay("--executor ray needs Ray: pip install 'tcw[ray]'") from error
        try:
            if not ray.is_initialized():
                ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        except Exception as error:
            raise NoRay(f"Ray cannot be reached: {type(error).__name__}: {error}") from error
        self._ray: Any = ray
        task = ray.remote(_traced)
        self._task: Any = task.options(num_cpus=1, memory=memory, scheduling_strategy="SPREAD")

    def __call__(self, settings: Settings, revision: str, stop: threading.Event) -> RecordedTarget:
        """Record the settings' file, at a git revision if one is given."""
        running = self._task.remote(msgspec.json.encode(settings), revision)
        done: list[Any] = []
        while not done:
            if stop.is_set():
                self._ray.cancel(running)
                return RecordedTarget(Recording(), End(status="interrupted", seconds=0.0))
            done, _ = self._ray.wait([running], timeout=_SECONDS)
        try:
            trace: bytes = self._ray.get(running)
        except Exception as error:  # the machine is gone, or has no memory: the target fails
            why = f"on the cluster: {error_line(error)}"
            end = End(status="crashed", seconds=0.0, reason=why)
            return RecordedTarget(Recording([end]), end)
        with tempfile.TemporaryDirectory(prefix="tcw-ray-") as folder:
            file = Path(folder, "run.tcw")
            file.write_bytes(trace)
            return read(file)


def _traced(settings: bytes, revision: str) -> bytes:
    """The task: a recording, as the bytes of its trace."""
    wanted = msgspec.json.decode(settings, type=Settings)
    with ExitStack() as stack:
        if revision:
            file = stack.enter_context(at_revision(Path(wanted.file), revision))
            wanted = msgspec.structs.replace(wanted, file=str(file))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tcw-ray-"))
        trace = Path(folder, "run.tcw")
        record(wanted, trace=trace, on_record=lambda _: None)
        return trace.read_bytes()
