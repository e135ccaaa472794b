"""The sides of a comparison, as torch.compile takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""Sides that are Inductor in one of torch.compile's modes."""
TORCH = "torch"
"""The side that computes nothing: what TorchDynamo and AOTAutograd take for a call."""


def backend(engine: str) -> str | Callable[..., Any]:
    """`inductor` by name; `tcw` from this checkout, installed or not; `torch`, which computes
    nothing."""
    if engine == TORCH:
        return _empty()
    if engine != "tcw":
        return engine
    sys.path.insert(0, str(ROOT))
    from tcw.compiler.engine.backend import backend as ours

    return ours


def compiled(function: Any, side: str, dynamic: bool | None = None) -> Any:
    """The function as a side runs it: `eager`; `default` or another mode of torch.compile; or a
    backend, and its mode if it has one (`tcw reduce-overhead`)."""
    import torch

    if side == "eager":
        return function
    engine, _, mode = ("inductor " + side if side in MODES else side).partition(" ")
    mode = "" if mode == "default" else mode
    return torch.compile(function, backend=backend(engine), mode=mode or None, dynamic=dynamic)


def _empty() -> Callable[..., Any]:
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(  # type: ignore[no-any-return]
        fw_compiler=partial(_nothing, anew=True),
        inference_compiler=partial(_nothing, anew=False),
        keep_inference_input_mutations=True,
    )


def _nothing(module: Any, inputs: Any, *, anew: bool) -> Callable[..., Any]:
    """A compiled graph for AOTAutograd that returns the first call's results again; `anew`: as new
    tensors, which autograd needs."""
    import torch

    results: list[Any] = []

    def call(arguments: list[Any]) -> list[Any]:
        if not results:
            results.extend(torch.fx.Interpreter(module).run(*arguments))
        arguments.clear()
        if not anew:
            return list(results)
        return [
            result.detach() if isinstance(result, torch.Tensor) else result for result in results
        ]

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
