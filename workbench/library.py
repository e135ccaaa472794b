"""Recording in this process: what a block of a program or a test compiles.

    with tcw.record() as recording:
        torch.compile(model)(x)
    assert not recording.breaks

The block starts with nothing compiled (`torch._dynamo.reset`) and without torch's compile caches,
so that everything is seen. The program runs as it would; nothing is timed and nothing is compared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from compiler.trace.records import AnyRecord, End, Kernel, Settings, Status
from compiler.trace.writer import TraceWriter
from viewers.recording import Recording
from viewers.summary import BreakSite, Finding, RecompileCause, Summary, summarise
from viewers.summary.facts import Value, facts, real_kernels
from viewers.summary.fused import fused


class Recorded:
    """What was compiled so far. Everything is computed when it is asked for."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        """All records."""

    @property
    def summary(self) -> Summary:
        return summarise(self.recording)

    @property
    def graphs(self) -> int:
        """Frames that captured a graph."""
        return self.summary.graphs

    @property
    def breaks(self) -> tuple[BreakSite, ...]:
        """Graph breaks by place and reason."""
        return self.summary.breaks

    @property
    def recompiles(self) -> tuple[RecompileCause, ...]:
        """Recompiles by cause."""
        return self.summary.recompiles

    @property
    def guards(self) -> int:
        """Guards of the first compile of each frame."""
        return self.summary.guards

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Generated kernels and library calls."""
        return tuple(real_kernels(self.recording))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What needs attention, ranked by cost."""
        return self.summary.findings

    def fused(self, *what: str) -> bool:
        """Whether one generated kernel computes each of these: names of operations (`"softmax"`),
        or source lines (`"gpt.py:12"`)."""
        return fused(self.recording, *what)

    def number(self, name: str) -> Value | None:
        """A number of docs/check.md, such as `loop nests`; None if it is not known."""
        return next(
            (
                one.value
                for one in facts(self.recording, self.summary)
                if not one.group and one.name == name
            ),
            None,
        )

    def text(self, width: int = 100) -> str:
        """The report of `tcw explain`."""
        from viewers.text.explain import explain
        from viewers.text.lines import fitted

        lines = explain(self.recording, width, 40, (), "")
        return "\n".join(one.text for one in fitted(lines, width)) + "\n"

    def __repr__(self) -> str:
        return self.text()


@contextmanager
def record(trace: str | os.PathLike[str] | None = None, *, file: str = "") -> Iterator[Recorded]:
    """Record every compile in the block. `trace`: also write a trace here, for `tcw open`. `file`:
    the program's own file, which places are given relative to; by default the caller's.

    Raises `OutputRefused` if the trace cannot be written, and RuntimeError inside another
    recording.
    """
    import torch
    import torch._functorch.config
    import torch._inductor.config

    from compiler import pipeline
    from compiler.capture.settings import record_changes
    from workbench.worker.environment import environment
    from workbench.worker.notes import WorkerRecorder
    from workbench.worker.patched import counting_calls
    from workbench.worker.start import start_of
    from workbench.worker.trace_file import TraceFile

    global _active
    if _active:
        raise RuntimeError("tcw.record() inside another recording")
    file = os.path.abspath(file or sys._getframe(2).f_code.co_filename)
    recording = Recording(file=Path(trace) if trace is not None else None)
    decode = msgspec.json.Decoder(AnyRecord).decode
    target = TraceFile(recording.file, lambda one: None)
    with ExitStack() as stack:
        stack.callback(target.close)
        settings = Settings(file=file)
        writer = TraceWriter(
            target.file, lambda line: recording.feed([decode(line)]), started=target.started
        )
        recorder = WorkerRecorder(writer, settings, user_root=os.path.dirname(file))
        recorder.emit(start_of(settings, target.started))
        recorder.source(file)
        torch._dynamo.reset()
        stack.enter_context(torch._inductor.config.patch(fx_graph_cache=False))
        stack.enter_context(torch._functorch.config.patch(enable_autograd_cache=False))
        hooks = stack.enter_context(pipeline.recording(recorder))
        recorder.emit(environment(hooks))
        stack.enter_context(counting_calls(recorder))
        _active = True
        status: Status = "failed"
        try:
            yield Recorded(recording)
            status = "ok"
        finally:
            _active = False
            record_changes(recorder)
            recorder.emit(End(status=status, seconds=writer.now(), calls=recorder.calls))


_active = False
"""Whether a block is being recorded: hooks are installed once."""
