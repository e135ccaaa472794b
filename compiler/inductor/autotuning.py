"""What a product was measured to be fastest with, and whether an earlier run had measured it.

`PersistentCache.lookup` (torch/_inductor/codecache.py) has the times of an operation's choices, or
calls the function that measures them. Which configuration of a Triton kernel is fastest is kept in
another cache (torch/_inductor/runtime/autotune_cache.py), one of those that `caches` records.
"""

from __future__ import annotations

import functools
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, patch
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id, current_graph_id
from tcw.compiler.trace.records import CacheLookup
from tcw.compiler.trace.writer import text_hash

CACHE = "autotuning"


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.codecache import PersistentCache

    safely = Safely(recorder, HOOK.name)
    original = PersistentCache.lookup

    @functools.wraps(original)
    def lookup(
        self: Any, choices: Any, op: Any, inputs: Any, benchmark: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if benchmark is None or recorder.quiet:  # asked for what is known, and asked again later
            return original(self, choices, op, inputs, benchmark, *args, **kwargs)
        measured = False

        def measuring(*given: Any, **named: Any) -> Any:
            nonlocal measured
            measured = True
            return benchmark(*given, **named)

        found = original(self, choices, op, inputs, measuring, *args, **kwargs)
        if measured or found:
            safely(_record, recorder, str(op), str(inputs), len(choices), measured)
        return found

    return patch(PersistentCache, "lookup", lookup)


def _record(recorder: Recorder, operation: str, inputs: str, choices: int, measured: bool) -> None:
    key = text_hash(f"{operation} {inputs}")
    missed = f"{operation}: {choices} choices were measured" if measured else ""
    recorder.emit(
        CacheLookup(
            cache=CACHE,
            verdict="miss" if measured else "hit",
            compile_id=current_compile_id(),
            graph=current_graph_id(),
            key=key,
            missed=missed,
        )
    )


HOOK = RecordingHook(
    name="autotuning",
    offers="products whose choices were measured, and those that an earlier run had measured",
    needs=("torch._inductor.codecache:PersistentCache.lookup(choices, op, inputs, benchmark)",),
    install=install,
    stage="codegen",
    test="inductor/test_autotuning.py",
)
