"""torch.compile, run as far as the recording needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook
from tcw.compiler.trace.records import Engine, Settings

torch_compile = torch.compile
"""torch's own, saved before the user's file can replace it."""

HOOK = Hook(
    name="backends",
    offers="a backend of its own for each run, so that the code of two runs is compared",
    needs=(
        "torch:_TorchCompileInductorWrapper",
        "torch._dynamo.backends.registry:_COMPILER_FNS",
        "torch._dynamo.backends.registry:lookup_backend",
        "torch._dynamo.backends.registry:register_backend(name)",
    ),
    test="worker/test_driven.py",
)

Backend = str | Callable[[Any, Sequence[Any]], Any]


def register(settings: Settings) -> None:
    """Make `backend="tcw"`, here and in the user's file, this process's own engine, which is
    recorded; the entry point of an installed tcw would load a second copy. Imported before our
    packages step aside, and only if a graph reaches it."""
    from torch._dynamo.backends import registry

    def as_captured(graph: Any, inputs: Sequence[Any], **options: Any) -> Any:
        return graph.forward

    backend: Callable[..., Any] = as_captured
    if settings.until != "capture":
        from tcw.compiler.engine import backend as engine

        backend = engine.backend
    registry._COMPILER_FNS.pop("tcw", None)
    registry.register_backend(backend, name="tcw")


def alone(settings: Settings, engine: Engine) -> Backend:
    """A backend of one run for `torch.compile`, equal only to itself: Dynamo then shares none of
    its code with another run, and the code of two runs can coexist. It holds `mode` and
    `dynamic`."""
    if engine == "inductor":
        made: Backend = torch._TorchCompileInductorWrapper(
            settings.mode or None, None, settings.dynamic
        )
    else:
        from torch._dynamo.backends import registry

        made = registry.lookup_backend("tcw")
    assert callable(made)
    call = made

    def backend(graph: Any, inputs: Sequence[Any], **options: Any) -> Any:
        return call(graph, inputs, **options)

    # what Dynamo asks of a backend besides calling it
    for name in ("get_compiler_config", "reset"):
        if hasattr(call, name):
            setattr(backend, name, getattr(call, name))
    return backend


def compiled(
    model: Callable[..., Any], settings: Settings, engine: Engine = "inductor"
) -> Callable[..., Any]:
    """`model` under torch.compile with this engine and the options of the recording.

    With an end at `capture` Dynamo's graphs run as they are. Later ends are Inductor itself,
    stopped by a hook of that stage. Our own engine stops by itself.
    """
    options: dict[str, Any] = {"fullgraph": settings.fullgraph, "dynamic": settings.dynamic}
    if settings.until == "capture":
        options["backend"] = "eager"
    else:
        options |= {"backend": engine, "mode": settings.mode or None}
    return torch_compile(model, **options)  # type: ignore[no-any-return]


def undo_compile(model: Callable[..., Any]) -> None:
    """Undo `model.compile()`, so that the module itself runs eagerly again."""
    if isinstance(model, torch.nn.Module):
        model._compiled_call_impl = None


def is_compiled(model: Callable[..., Any]) -> bool:
    """Whether the user's file compiled it, as a whole or in part."""
    return (
        getattr(model, "_orig_mod", None) is not None
        or getattr(model, "_torchdynamo_orig_callable", None) is not None
        or (
            isinstance(model, torch.nn.Module)
            and getattr(model, "_compiled_call_impl", None) is not None
        )
    )
