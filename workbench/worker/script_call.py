"""One call of what a script compiles: the model and inputs of a profile.

The script runs with a `torch.compile` that runs everything eagerly, and is abandoned at the wanted
call. The context of the call (autocast, no_grad) is that of the profile as well.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import Any

import torch

from tcw.compiler.control.hooks import during, patch
from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import Model
from tcw.workbench.worker.backends import torch_compile
from tcw.workbench.worker.load import Loaded, run_script
from tcw.workbench.worker.user_code import UserCode


class _Left(BaseException):
    """Abandons the script; its own `except Exception` does not catch this."""


class _Compiling:
    """Replaces `torch.compile`."""

    def __init__(self, file: str, wanted: int) -> None:
        self.file = file
        self.wanted = wanted
        self.calls = 0
        self.found: Loaded | None = None
        self.place = ""
        """Where the call is, and its context, in words."""

    def __call__(self, model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda decorated: self(decorated, **options)
        compiled = torch_compile(model, **options)
        owner = getattr(model, "__self__", None)
        if isinstance(model, torch.nn.Module):
            optimized: Model = compiled
            real = compiled.forward

            def back() -> Model:
                compiled.forward = real
                return optimized

            compiled.forward = self._asked(model, back)
            return compiled
        if isinstance(owner, torch.nn.Module) and model.__name__ == "_call_impl":

            def put() -> Model:
                owner._compiled_call_impl = compiled
                module: Model = owner
                return module

            return self._asked(model, put)
        return self._asked(model, lambda: compiled)

    def _asked(self, eager: Model, given: Callable[[], Model]) -> Model:
        """Counts calls, and abandons the script at the wanted one; `given` is then the model."""

        @functools.wraps(eager if not isinstance(eager, torch.nn.Module) else eager.forward)
        def called(*positional: Any, **keyword: Any) -> Any:
            if self.found is not None or torch.compiler.is_compiling():
                return eager(*positional, **keyword)
            self.calls += 1
            if self.calls < self.wanted:
                return eager(*positional, **keyword)
            around, words = _surroundings()
            where = f"at line {_line_in(self.file, sys._getframe(1))}"
            self.place = " ".join((where, *words))
            inputs = InputSet(positional, keyword)
            self.found = Loaded(given(), [inputs], around=around)
            raise _Left

        return called


def load_call(code: UserCode, wanted: int) -> tuple[Loaded, str]:
    """Run the script up to this call (from 1) of what it compiles. Returns what is called, with its
    inputs, and where that was, in words. Raises `UserError` if it makes no such call, and whatever
    the script raises."""
    compiling = _Compiling(code.file, wanted)
    with during(patch(torch, "compile", compiling)):
        try:
            run_script(code)
        except _Left:
            pass
        except SystemExit as error:
            if error.code not in (None, 0):
                raise
    if compiling.found is None:
        name = os.path.basename(code.file)
        made = f"only {compiling.calls}" if compiling.calls else "none"
        raise UserError(
            f"{name} is a script and has no `model`: call {wanted} of what it compiles was to be "
            f"profiled, and it made {made}",
            type="NoCall",
            hint=f"name the model and its inputs: tcw profile {name} --model EXPR --inputs "
            "'f32[8,64]'",
            doing="running the script",
        )
    compiling.found.names.update(vars(sys.modules["__main__"]))
    return compiling.found, compiling.place


def _line_in(file: str, frame: FrameType | None) -> int:
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


def _surroundings() -> tuple[Callable[[], AbstractContextManager[Any]], list[str]]:
    """What restores the current grad mode and autocast; and their words."""
    inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    casts = [
        (device, torch.get_autocast_dtype(device))
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    ]

    words = ["under torch.inference_mode()"] if inference else []
    words += ["under torch.no_grad()"] if not grad and not inference else []
    words += [f"with autocast to {dtype}" for _, dtype in casts]

    @contextmanager
    def around() -> Iterator[None]:
        with ExitStack() as stack:
            if inference:
                stack.enter_context(torch.inference_mode())
            elif not grad:
                stack.enter_context(torch.no_grad())
            for device, dtype in casts:
                stack.enter_context(torch.autocast(device, dtype))
            yield

    return around, words
