"""torch.compile: run as far as the recording needs, with the settings that it asks for, and as the
user's file left it."""

from __future__ import annotations

import builtins
import difflib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._dynamo import eval_frame

from tcw.compiler.control.describe import describe
from tcw.compiler.control.hooks import Hook, during, patch
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.user_error import UserError
from tcw.compiler.graphs.lines import is_users_own
from tcw.compiler.protocol.torch_settings import SettingError, TorchSetting, read_setting
from tcw.compiler.trace.records import Engine, Settings, Warned
from tcw.workbench.worker.worker_recorder import WorkerRecorder

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
    recorded; it is imported only if a graph reaches it."""
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


def warn_if_replaced(recorder: Recorder) -> None:
    """Note that the user's file has replaced torch.compile."""
    if torch.compile is torch_compile:
        return
    code = getattr(torch.compile, "__code__", None)
    place = (
        f" at {code.co_filename}:{code.co_firstlineno}"
        if code is not None
        else f" by {describe(torch.compile)}"
    )
    recorder.emit(
        Warned(message=f"torch.compile is replaced{place}; the recording used torch's own")
    )


@contextmanager
def counting_calls(recorder: WorkerRecorder) -> Iterator[None]:
    """Number the calls of whatever a script has compiled, in `recorder.call`.

    Every compiled callable gets its callback from `_callback_from_stance`
    (torch/_dynamo/eval_frame.py) when it starts, outside what Dynamo traces, so nothing of the
    script has to be wrapped. If a torch lacks this function, all calls have the number 0.
    """
    original = getattr(eval_frame, "_callback_from_stance", None)
    if original is None:
        yield
        return

    def counted(callback: Any, *arguments: Any, **options: Any) -> Any:
        if callback is not None and callback is not False:
            recorder.begin_call()
        return original(callback, *arguments, **options)

    with during(patch(eval_frame, "_callback_from_stance", counted)):
        yield


@contextmanager
def applied(lines: Sequence[str], names: Mapping[str, Any], root: str) -> Iterator[None]:
    """Apply these lines as settings, and undo them at the end.

    `names`: what the user's file binds. A function for a setting that is a set is looked up there,
    then in the user's other modules under `root`. Raises `UserError` for a line that is not a
    setting, and for an unknown name.
    """
    with ExitStack() as stack:
        for line in lines:
            try:
                setting = read_setting(line)
            except SettingError as error:
                raise _bad(str(error)) from error
            module = importlib.import_module(setting.module)
            stack.enter_context(module.patch({setting.name: _value(module, setting, names, root)}))
        yield


def _value(module: Any, setting: TorchSetting, names: Mapping[str, Any], root: str) -> Any:
    try:
        now = module
        for part in setting.name.split("."):
            now = getattr(now, part)
    except AttributeError as error:
        near = difflib.get_close_matches(setting.name, list(module._config), 1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise _bad(f"{setting.module} has no {setting.name}", hint) from error
    if not setting.adds:
        return setting.value
    if not isinstance(now, set):
        raise _bad(f"{setting.module}.{setting.name} is not a set")
    return {*now, _function(setting.adds, names, root)}


def _function(name: str, names: Mapping[str, Any], root: str) -> Any:
    """The value of a dotted name in the user's file, else in another module of theirs."""
    first, *rest = name.split(".")
    users = (
        vars(module)
        for module in list(sys.modules.values())
        if is_users_own(getattr(module, "__file__", None) or "", root)
    )
    for space in (names, vars(builtins), *users, sys.modules):
        if first not in space:
            continue
        found = space[first]
        try:
            for part in rest:
                found = getattr(found, part)
        except AttributeError:
            continue
        return found
    raise _bad(f"the file has no {name}")


def _bad(words: str, hint: str = "") -> UserError:
    return UserError(f"--set: {words}", type="BadSetting", hint=hint, doing="setting torch up")
