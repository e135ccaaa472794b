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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tcw.compiler.trace.records import AnyRecord, Kernel, Settings, Status
from tcw.compiler.trace.writer import TraceWriter
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.breaks import BreakSite
from tcw.viewers.summary.facts import Value, facts, real_kernels
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.fusion import fused
from tcw.viewers.summary.recompiles import RecompileCause
from tcw.workbench import linux


class Recorded:
    """What was compiled so far. Everything is computed when it is requested."""

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
                fact.value
                for fact in facts(self.recording, self.summary)
                if not fact.group and fact.name == name
            ),
            None,
        )

    def text(self, width: int = 100) -> str:
        """The report of `tcw explain`."""
        from tcw.viewers.kit.lines import fitted
        from tcw.viewers.text.explain import explain

        lines = explain(self.recording, width, 40, (), "")
        return "\n".join(line.text for line in fitted(lines, width)) + "\n"

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """The report as a notebook shows it: colours, no script."""
        from tcw.viewers.html.report import report
        from tcw.viewers.text.explain import explain

        return report(explain(self.recording, 100, 40))


@contextmanager
def record(trace: str | os.PathLike[str] | None = None, *, file: str = "") -> Iterator[Recorded]:
    """Record every compile in the block. `trace`: also write a trace here, for `tcw open`. `file`:
    the program's own file, which places are given relative to; by default the caller's.

    Raises `OutputRefused` if the trace cannot be written, and RuntimeError inside another
    recording, or on a system other than Linux.
    """
    if obstacle := linux.why_not():
        raise RuntimeError(obstacle)
    import torch
    import torch._functorch.config
    import torch._inductor.config

    from tcw.workbench.worker.own_process import finish, hooked
    from tcw.workbench.worker.trace_file import TraceFile

    global _active
    if _active:
        raise RuntimeError("tcw.record() inside another recording")
    file = os.path.abspath(file or sys._getframe(2).f_code.co_filename)
    recording = Recording(file=Path(trace) if trace is not None else None)
    decode = msgspec.json.Decoder(AnyRecord).decode
    target = TraceFile(recording.file, lambda one: None)

    with ExitStack() as stack:
        stack.callback(target.close)

        def start_anew() -> None:
            torch._dynamo.reset()
            stack.enter_context(torch._inductor.config.patch(fx_graph_cache=False))
            stack.enter_context(torch._functorch.config.patch(enable_autograd_cache=False))

        settings = Settings(file=file, program=True)
        writer = TraceWriter(
            target.file, lambda line: recording.feed([decode(line)]), started=target.started
        )
        recorder = stack.enter_context(
            hooked(settings, writer, os.path.dirname(file), prepare=start_anew)
        )
        _active = True
        status: Status = "failed"
        try:
            yield Recorded(recording)
            status = "ok"
        finally:
            _active = False
            finish(recorder, status)


_active = False
"""Whether a block is being recorded: hooks are installed once."""


def explain(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], *, file: str
) -> Recorded:
    """Compile `model`, call it once, and return what was recorded.

    A model that `torch.compile` made is called as it is. Raises what the call raises.
    """
    import torch

    with record(file=file) as recorded:
        compiled = model if hasattr(model, "_torchdynamo_orig_callable") else torch.compile(model)
        compiled(*args, **kwargs)
    return recorded
