"""What hooks write while a test compiles something, decoded from the trace's own bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import torch
from torch._inductor.utils import fresh_cache

from tcw.compiler.control.hooks import RecordingHook, install_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.trace.records import AnyRecord, Settings
from tcw.compiler.trace.writer import TraceWriter
from tcw.viewers.recording import Recording


class Recorded(Recording):
    """A recording that grows while the block runs."""

    recorder: Recorder


@contextmanager
def record(
    hooks: Sequence[RecordingHook], *, caches: bool = False, **settings: Any
) -> Iterator[Recorded]:
    """Compiles inside the block are recorded. Every hook must be available.

    `caches=False` turns torch's compile caches off; else the block starts with empty ones.
    `settings` are those of the recording.
    """
    torch._dynamo.reset()
    decode = msgspec.json.Decoder(AnyRecord).decode
    recorded = Recorded()
    writer = TraceWriter(lambda line: recorded.feed([decode(line)]))
    recorded.recorder = Recorder(writer=writer, settings=Settings(**{"file": __file__, **settings}))
    with ExitStack() as stack:
        if caches:
            stack.enter_context(fresh_cache())
        else:
            stack.enter_context(torch._inductor.config.patch(force_disable_caches=True))
        statuses, uninstall = install_all(hooks, recorded.recorder)
        stack.callback(torch._dynamo.reset)
        stack.callback(uninstall)
        assert [status.reason for status in statuses if not status.available] == []
        yield recorded


def without_codegen(
    module: Any, inputs: Any, *, on_graph: Callable[[dict[str, Any]], None] | None = None
) -> Any:
    """A backend that is Inductor up to the point where it would lower a graph.

    `on_graph` is given Inductor's options for each graph at that point.
    """
    from functorch.compile import make_boxed_func
    from torch._inductor.compile_fx import compile_fx

    def inner_compile(gm: Any, example_inputs: Any, **options: Any) -> Any:
        if on_graph is not None:
            on_graph(options)
        return make_boxed_func(gm.forward)

    return compile_fx(module, inputs, inner_compile=inner_compile)
