"""Compiles something while the capture hooks record, and keeps torch's own account of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch._dynamo.utils import counters

from tcw.compiler.capture import captured_graphs, fallbacks, frames, graph_breaks, skips, steps
from tcw.compiler.trace.records import Warned
from tcw.viewers.recording import Recording
from tests.cpu import recorded
from tests.cpu.structured_trace import Event, structured_trace

HOOKS = [module.HOOK for module in (frames, captured_graphs, graph_breaks, skips, fallbacks, steps)]
_PLACE = re.compile(r"Graph break in user code at (?P<file>.+):(?P<line>\d+)\n")
_CODE = re.compile(r"gb(?P<code>\d{4})\.html")


@dataclass
class Compiled:
    """What our hooks recorded, and torch's structured trace and counters of the same run."""

    recording: Recording
    events: list[Event] = field(default_factory=list)
    counted_breaks: int = 0
    resumes: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    """(stack entries, names of locals) that each resume function takes."""
    result: Any = None
    error: BaseException | None = None

    def artifacts(self, name: str) -> list[str]:
        return [
            payload
            for metadata, payload in self.events
            if metadata.get("artifact", {}).get("name") == name
        ]

    def metrics(self) -> list[dict[str, Any]]:
        return [
            event["compilation_metrics"] for event, _ in self.events_with("compilation_metrics")
        ]

    def events_with(self, name: str) -> list[Event]:
        return [(metadata, payload) for metadata, payload in self.events if name in metadata]

    def break_sites(self) -> list[tuple[str, str, int]]:
        """(code, file, line) of each break in torch's structured trace."""
        return [_site(payload) for payload in self.artifacts("dynamo_graph_break_reason")]

    def warnings(self) -> list[str]:
        return [record.message for record in self.recording.all(Warned)]


def _site(payload: str) -> tuple[str, str, int]:
    place, code = _PLACE.search(payload), _CODE.search(payload)
    assert place is not None, payload
    return f"GB{code['code']}" if code else "", place["file"], int(place["line"])


def compiled(
    function: Callable[..., Any],
    *calls: Sequence[Any],
    record: str = "default",
    compile: bool = True,
    **options: Any,
) -> Compiled:
    """Compile `function` and call it once for each of `calls`; an exception is kept.

    `compile=False` calls the function unchanged: it compiles something itself.
    """
    from torch._dynamo.resume_execution import ContinueExecutionCache

    counters.clear()
    lookup = ContinueExecutionCache.lookup
    with recorded.record(HOOKS, file=__file__, record=record) as recording:
        run = Compiled(recording)

        def looking_up(code: Any, lineno: int, *key: Any) -> Any:
            run.resumes.append((key[3], key[4]))
            return lookup(code, lineno, *key)

        replaced = mock.patch.object(ContinueExecutionCache, "lookup", looking_up)
        with replaced, structured_trace() as trace:
            run.events = trace.events
            ready = function
            try:
                if compile:
                    ready = torch.compile(function, **{"backend": "eager", **options})
                for number, arguments in enumerate(calls, 1):
                    recording.recorder.call = number
                    run.result = ready(*arguments)
            except Exception as error:
                run.error = error
        run.counted_breaks = sum(counters["graph_break"].values())
    return run
