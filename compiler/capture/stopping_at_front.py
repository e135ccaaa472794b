"""Stopping after capture or AOTAutograd: Inductor neither generates code nor starts a compiler.

`torch.compile` creates a `_TorchCompileInductorWrapper` (torch/__init__.py) for its default
backend. That and every other way into Inductor calls `compile_fx` (torch/_inductor/compile_fx.py),
which compiles each of AOTAutograd's graphs with `inner_compile`. `inductor/stopping_early.py`
handles later ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, patch
from tcw.compiler.control.recorder import Recorder


def install(recorder: Recorder) -> Uninstall:
    if recorder.settings.until == "capture":
        return _after_capture(recorder)
    if recorder.settings.until == "autograd":
        return _after_autograd()
    return lambda: None


def _after_capture(recorder: Recorder) -> Uninstall:
    """Run Dynamo's graphs uncompiled. Does not import Inductor, which takes a second."""
    import torch
    from torch._dynamo.utils import counters

    def run_captured(self: Any, model_: Any, inputs_: Any, *args: Any, **kwargs: Any) -> Any:
        return model_.forward

    undo = patch(torch._TorchCompileInductorWrapper, "__call__", run_captured)
    counted = sum(counters["inductor"].values())

    def uninstall() -> None:
        undo()
        if sum(counters["inductor"].values()) > counted:
            recorder.warn_once(
                "Inductor ran although the recording ends after capture: the file calls it from a "
                "backend of its own"
            )

    return uninstall


def _after_autograd() -> Uninstall:
    """Run Inductor's front half (passes, decompositions, partitioner), and run the graphs that it
    would lower uncompiled."""
    from torch._functorch import config
    from torch._inductor import compile_fx

    original = compile_fx.compile_fx

    def front_half(
        model_: Any, example_inputs_: Any, inner_compile: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        # this cache holds generated code, and there is none
        with config.patch(enable_autograd_cache=False):
            return original(model_, example_inputs_, run_graph, *args, **kwargs)

    return patch(compile_fx, "compile_fx", front_half)


def run_graph(graph: Any, inputs: Sequence[Any], **options: Any) -> Any:
    """An `inner_compile` that compiles nothing."""
    from torch._functorch._aot_autograd.utils import make_boxed_func

    return make_boxed_func(graph.forward)


HOOK = RecordingHook(
    name="stopping at the front",
    offers="recordings that end after capture or AOTAutograd, of scripts that compile too",
    needs=(
        "torch:_TorchCompileInductorWrapper.__call__(model_, inputs_)",
        "torch._functorch._aot_autograd.utils:make_boxed_func",
        "torch._dynamo.utils:counters",
    ),
    install=install,
    stage="capture",
    test="capture/test_stopping.py",
)
