"""Records in the program's own process: a block (`tcw.record`), or all from its first compile to
its end (`TCW_RECORD`, `tcw run`).

The program runs as without it: its settings and caches are its own, nothing is timed, and an error
of ours does not reach it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tcw.compiler import pipeline
from tcw.compiler.capture.settings import record_changes
from tcw.compiler.trace.bounded import SizeBound, trace_size
from tcw.compiler.trace.output_file import OutputRefused, safe_name
from tcw.compiler.trace.records import End, Settings, Status
from tcw.compiler.trace.writer import TraceWriter
from tcw.start_up import SAMPLE_VARIABLE
from tcw.workbench.worker.backends import counting_calls
from tcw.workbench.worker.environment import environment
from tcw.workbench.worker.failures import ended_by, failure_of
from tcw.workbench.worker.start import start_of
from tcw.workbench.worker.trace_file import RecordStream, TraceFile
from tcw.workbench.worker.worker_recorder import WorkerRecorder


@contextmanager
def hooked(
    settings: Settings, writer: TraceWriter, root: str, prepare: Callable[[], None] = lambda: None
) -> Iterator[WorkerRecorder]:
    """Record what is compiled in the block; `prepare` is called before the hooks are installed.

    Neither the settings that the program has changed nor the end are recorded: see `finish`.
    """
    recorder = WorkerRecorder(writer, settings, user_root=root)
    recorder.emit(start_of(settings, writer.started))
    recorder.source(settings.file)
    prepare()
    with pipeline.recording(recorder) as hooks:
        recorder.emit(environment(hooks, only_begun=True))
        with counting_calls(recorder):
            yield recorder


def finish(recorder: WorkerRecorder, status: Status, exit_code: int | None = None) -> None:
    """Record what is known only at the end."""
    record_changes(recorder)
    bound = recorder.writer.bound
    if bound is not None and (left := bound.last()) is not None:
        recorder.emit(left)
    seconds = recorder.writer.now()
    recorder.emit(End(status=status, seconds=seconds, calls=recorder.calls, exit_code=exit_code))


def begin(folder: str) -> None:
    """Record this process from now on, into a new trace in `folder`, which is created if
    missing."""
    _process.begin(folder)


class _Process:
    """The recording of this process, if there is one."""

    def __init__(self) -> None:
        self.recorder: WorkerRecorder | None = None
        self.stack = ExitStack()
        self.target: TraceFile | None = None
        self.stream: _OwnDescriptor | None = None
        self.leave: Callable[[int], Any] = os._exit
        self.registered = False

    def begin(self, folder: str) -> None:
        self.stack.close()  # the hooks of the process that this one was forked from
        file, root = main_file()
        arguments = tuple(map(str, sys.argv[1:]))
        settings = Settings(file=file, arguments=arguments, cached=True, program=True)
        self.target = target = _new_trace(Path(folder), file)
        self.stream = stream = _OwnDescriptor(target.descriptor)
        stack = ExitStack()
        try:
            writer = TraceWriter(stream, started=target.started, bound=_bound())
            self.recorder = recorder = stack.enter_context(hooked(settings, writer, root))
        except BaseException:
            stack.close()
            target.close()
            raise
        self.stack = stack
        # The first compile is in a call that began before calls were counted.
        recorder.calls = recorder.call = 1
        if not self.registered:
            self.registered = True
            atexit.register(self._at_exit)
            os.register_at_fork(after_in_child=self._forked)
            self._watch_leaving()

    def _at_exit(self) -> None:
        # set by the interpreter when it has printed an exception that nobody caught
        error = getattr(sys, "last_value", None)
        self._end(error if isinstance(error, BaseException) else None, None)

    def _end(self, error: BaseException | None, exit_code: int | None) -> None:
        recorder, self.recorder = self.recorder, None
        if recorder is None:
            return
        with contextlib.suppress(Exception):
            status: Status = "ok" if exit_code is None else "exited"
            if isinstance(error, KeyboardInterrupt):
                status = "interrupted"
            elif error is not None:
                status, exit_code = ended_by(error)
                recorder.emit(failure_of(error, "running the program", recorder))
            finish(recorder, status, exit_code)

    def _watch_leaving(self) -> None:
        """Finish at `os._exit`, which skips exit handlers; children of multiprocessing always end
        by it."""

        def _exit(status: int) -> Any:
            self._end(None, status if isinstance(status, int) and 0 <= status < 256 else None)
            return self.leave(status)

        os._exit = _exit

    def _forked(self) -> None:
        """Write nothing to the parent's trace. The lock on it belongs to the parent: the child only
        closes its copy of the descriptor."""
        recorder, target = self.recorder, self.target
        self.recorder = self.target = None
        if recorder is not None:
            recorder.writer = TraceWriter()  # a thread of the parent may hold the other's lock
        if target is not None and self.stream is not None:
            if self.stream.is_ours():
                os.close(target.descriptor)
            target.descriptor = -1


_process = _Process()


class _OwnDescriptor(RecordStream):
    """A trace whose descriptor the program may close, as a daemon does, and reuse for a file of its
    own, which must not get our records."""

    def __init__(self, trace: int) -> None:
        super().__init__(trace, -1)
        self._descriptor = trace
        self._identity = _identity(trace)

    def is_ours(self) -> bool:
        """Whether the descriptor is still that of the trace."""
        return _identity(self._descriptor) == self._identity

    def __call__(self, line: bytes) -> None:
        if self._trace >= 0 and not self.is_ours():
            self._trace = -1
            self.lost = "the program closed the trace"
        super().__call__(line)


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def main_file() -> tuple[str, str]:
    """The program's file, and the folder that holds the user's own files: that of the file, above
    its packages; for an installed program (`pytest`, `torchrun`) or none, the current folder."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if not isinstance(file, str) or not os.path.isfile(file):
        name = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-") else "python"
        return os.path.abspath(name), os.getcwd()
    file = os.path.abspath(file)
    folder = os.path.dirname(file)
    prefixes = {os.path.realpath(one) for one in (sys.prefix, sys.base_prefix)}
    installed = any(
        os.path.realpath(file).startswith(os.path.join(prefix, part) + os.sep)
        for prefix in prefixes
        for part in ("bin", "lib", "lib64")
    )
    if installed:
        return file, os.getcwd()
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return file, folder


def _bound() -> SizeBound | None:
    """The limit of the trace's size from the environment; None for no limit. An invalid size is no
    limit: `tcw run` has checked its own."""
    with contextlib.suppress(ValueError):
        return SizeBound(trace_size(os.environ.get(SAMPLE_VARIABLE, "")))
    return None


def _new_trace(folder: Path, file: str) -> TraceFile:
    """`train-rank0-4711.tcw` in the folder, with a number if that process id has a trace
    already."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = Path(file).stem
    name = Path(file).parent.name if stem == "__main__" else stem
    rank = re.sub(r"\D", "", os.environ.get("RANK", ""))[:8]
    parts = [safe_name(name, "program")]
    parts += [f"rank{rank}"] if rank else []
    parts += [str(os.getpid())]
    for number in range(1, 1000):
        path = folder / ("-".join([*parts, *([str(number)] if number > 1 else [])]) + ".tcw")
        if not os.path.lexists(path):
            return TraceFile(path, lambda one: None)
    raise OutputRefused(f"{folder} has too many traces of process {os.getpid()}")
