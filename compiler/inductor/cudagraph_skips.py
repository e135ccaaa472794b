"""CUDA graphs that torch did not use, and why.

torch reports each through `log_cudagraph_skip_and_bump_counter`
(torch/_inductor/cudagraph_utils.py), which its modules import by name: when a graph is compiled,
and when one is recorded or replayed. The message ends with the stack of the operation at fault if
torch knows it.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from compiler.control.hooks import Hook, Uninstall, patch, undo_all
from compiler.control.recorder import Recorder
from compiler.control.safely import Safely
from compiler.graphs.current import current_compile_id
from compiler.graphs.lines import parse_stack_trace
from compiler.trace.records import CudagraphSkip

_FUNCTION = "log_cudagraph_skip_and_bump_counter"
_MODULES = (
    "torch._inductor.output_code",
    "torch._inductor.cudagraph_trees",
    "torch._inductor.compile_fx",
)
_PREFIXES = ("skipping cudagraphs due to ", "skipping cudagraph due to ")
_STACK = "Found from"


def install(recorder: Recorder) -> Uninstall:
    safely = Safely(recorder, HOOK.name)
    modules = [importlib.import_module(name) for name in _MODULES]
    original = getattr(modules[0], _FUNCTION)

    @functools.wraps(original)
    def log(*args: Any, **kwargs: Any) -> Any:
        message = args[0] if args else kwargs.get("msg", "")
        safely(_record, recorder, str(message))
        return original(*args, **kwargs)

    return undo_all([patch(module, _FUNCTION, log) for module in modules])


def _record(recorder: Recorder, message: str) -> None:
    stack = parse_stack_trace(message)
    recorder.emit(
        CudagraphSkip(
            reason=reason_of(message),
            compile_id=current_compile_id(),
            location=stack[-1] if stack else None,
        )
    )


def reason_of(message: str) -> str:
    """`mutated inputs (1 instances)`: without what all reasons begin with, and the stack."""
    reason = message.partition(_STACK)[0].strip()
    for prefix in _PREFIXES * 2:  # torch puts it before some reasons twice
        reason = reason.removeprefix(prefix)
    return " ".join(reason.rstrip(". ").split()) or message.strip()


HOOK = Hook(
    name="cudagraph skips",
    offers="CUDA graphs that were not used, why, and at which line",
    needs=tuple(f"{module}:{_FUNCTION}" for module in _MODULES),
    install=install,
    stage="build",
    test="inductor/test_cudagraph_skips.py",
)
