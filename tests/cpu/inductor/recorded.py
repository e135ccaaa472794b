"""Recording a compile in a test: the hooks of Inductor, a sink in memory, nothing built."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from tcw.compiler.control.gate import Gate
from tcw.compiler.control.hooks import RecordingHook, install_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.engine.recording import listening
from tcw.compiler.pipeline import HOOKS
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.protocol.decision_records import decided_record
from tcw.compiler.protocol.stages import reached
from tcw.compiler.trace.reader import TraceDecoder
from tcw.compiler.trace.records import AnyRecord, HookStatus, Record, Settings, Stage, Text, Wrapper
from tcw.compiler.trace.writer import TraceWriter

R = TypeVar("R", bound=Record)


@dataclass
class Recorded:
    """What one recording wrote."""

    lines: list[bytes] = field(default_factory=list)
    statuses: Sequence[HookStatus] = ()
    gate: Gate = field(default_factory=Gate)
    _records: list[AnyRecord] | None = None

    @property
    def records(self) -> list[AnyRecord]:
        if self._records is None:
            self._records = TraceDecoder().feed(b"".join(self.lines))
        return self._records

    def all(self, kind: type[R]) -> list[R]:
        return [record for record in self.records if isinstance(record, kind)]

    def text(self, key: str) -> str:
        return next(record.body for record in self.all(Text) if record.hash == key)

    @property
    def wrappers(self) -> list[str]:
        return [self.text(wrapper.text) for wrapper in self.all(Wrapper)]


@contextlib.contextmanager
def recording(
    until: Stage = "codegen",
    hooks: Sequence[RecordingHook] = HOOKS,
    overrides: dict[str, str] | None = None,
    ask: Callable[[Decision], str] | None = None,
) -> Iterator[Recorded]:
    """Everything compiled inside is recorded; it ends after `until`."""
    torch._dynamo.reset()
    recorded = Recorded()
    settings = Settings(file="", until=until, overrides=overrides or {})
    recorder = Recorder(TraceWriter(recorded.lines.append), settings)
    recorded.gate = Gate(overrides, lambda one: recorder.emit(decided_record(one)), ask)
    with listening(recorder, recorded.gate):
        recorded.statuses, uninstall = install_all(
            [hook for hook in hooks if reached(hook.stage, until)], recorder
        )
        try:
            yield recorded
        finally:
            uninstall()
            torch._dynamo.reset()


def record(
    function: Callable[..., Any],
    *inputs: Any,
    until: Stage = "codegen",
    grad: bool = False,
    hooks: Sequence[RecordingHook] = HOOKS,
    overrides: dict[str, str] | None = None,
    ask: Callable[[Decision], str] | None = None,
    dynamic: bool | None = None,
) -> tuple[Recorded, Any]:
    """Compile and call once; returns (the recording, the output)."""
    with recording(until, hooks, overrides, ask) as recorded, torch.set_grad_enabled(grad):
        output = torch.compile(function, dynamic=dynamic)(*inputs)
        if grad:
            output.sum().backward()
    return recorded, output
