"""The user's file, run: a model with its inputs, a script that compiles on its own, or one call of
what a script compiles.

For a call the script runs with a `torch.compile` that runs everything eagerly, and is abandoned at
the wanted call. The context of the call (autocast, no_grad) is that of the profile as well.
"""

from __future__ import annotations

import ast
import difflib
import functools
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Literal

import torch

from tcw.compiler.control.describe import class_name
from tcw.compiler.control.hooks import during, patch
from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import Model
from tcw.compiler.trace.records import Location, Settings
from tcw.workbench.worker.backends import torch_compile
from tcw.workbench.worker.inputs import generated, input_sets
from tcw.workbench.worker.specification import CallSpecification
from tcw.workbench.worker.user_code import UserCode


@dataclass
class Loaded:
    """What is to be recorded."""

    model: Callable[..., Any]
    sets: list[InputSet]
    optimizer: Any = None
    """The file's own, as it is bound there: `tcw.compiler.measure.account.optimizer` reads it."""
    names: dict[str, Any] = field(default_factory=dict)
    """What the file binds."""
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """The context of its calls."""


def form_of(code: UserCode, settings: Settings) -> Literal["model", "script"]:
    """Whether the file is loaded for its model, or run as a script. A file with `model` and
    `example_inputs` is a model file even if it also compiles."""
    has_model = bool(settings.model) or "model" in code.bound or code.star
    has_inputs = bool(settings.inputs) or "example_inputs" in code.bound or code.star
    return "script" if code.compiles and not (has_model and has_inputs) else "model"


def run_script(code: UserCode) -> None:
    """Run the file as `__main__`. All that it raises is passed on, SystemExit too."""
    module = sys.modules["__main__"]
    module.__file__ = code.file
    exec(code.code, vars(module))


def load_model(code: UserCode, settings: Settings, calls: list[CallSpecification]) -> Loaded:
    """Run the file and find the model and its inputs. Raises `UserError` if they are missing or of
    another kind, and whatever the file raises."""
    sys.modules.pop(code.module, None)  # of an earlier run
    code.module = _free_name(Path(code.file).stem)
    module = ModuleType(code.module)
    module.__file__ = code.file
    sys.modules[module.__name__] = module
    exec(code.code, vars(module))
    if settings.model:
        model = _evaluate(settings.model, vars(module))
    elif "model" in vars(module):
        model = vars(module)["model"]
    else:
        raise _no_model(code, module)
    _check_model(model, code, settings)
    optimizer = vars(module).get("optimizer")
    if calls:
        return Loaded(model, generated(calls), optimizer, vars(module))
    if "example_inputs" not in vars(module):
        near = difflib.get_close_matches("example_inputs", list(vars(module)), 1)
        raise UserError(
            f"{Path(code.file).name} has no `example_inputs`",
            type="NoInputs",
            location=Location(file=code.file, line=1),
            hint=f"is it {near[0]}?" if near else "add them, or pass --inputs 'f32[8,64]'",
            doing="reading inputs",
        )
    sets = input_sets(vars(module)["example_inputs"], code.file)
    return Loaded(model, sets, optimizer, vars(module))


def _free_name(stem: str) -> str:
    """The file's module name, unless it would hide a module that others need (`types.py`)."""
    while stem in sys.modules or stem in sys.stdlib_module_names:
        stem += "_"
    return stem


def _evaluate(expression: str, names: dict[str, Any]) -> Any:
    """Evaluate the expression. A plain name is only looked up in the file: a trace may ask for a
    name, and builtins such as `exec` must not become a model with a text as its input."""
    name = unicodedata.normalize("NFKC", expression.strip())
    if name.isidentifier() and name not in names:
        raise _not_defined(expression, name, names, "the file does not define that name")
    try:
        tree = ast.parse(expression.strip(), "<--model>", "eval")
    except SyntaxError as error:
        raise UserError(
            f"--model {expression!r}: {error.msg}", type="SyntaxError", doing="reading --model"
        ) from error
    try:
        return eval(compile(tree, "<--model>", "eval", dont_inherit=True), names)
    except NameError as error:
        raise _not_defined(expression, error.name or "", names, str(error)) from error


def _not_defined(expression: str, name: str, names: dict[str, Any], why: str) -> UserError:
    near = difflib.get_close_matches(name, list(names), 1)
    return UserError(
        f"--model {expression!r}: {why}",
        type="NameError",
        hint=f"did you mean {near[0]}?" if near else _what_is_there(names),
        doing="reading --model",
    )


def _check_model(model: object, code: UserCode, settings: Settings) -> None:
    name = settings.model or "model"
    if isinstance(model, type):
        called = str(type.__getattribute__(model, "__name__"))
        fix = f"--model '{called}()'" if settings.model else f"model = {called}()"
        raise UserError(
            f"`{name}` is the class {called}, not an instance of it",
            type="NoModel",
            location=_place(code, called, settings),
            hint=f"{fix}, with the arguments that {called} takes",
        )
    if not callable(model):
        raise UserError(
            f"`{name}` is a {class_name(model)}, which cannot be called",
            type="NoModel",
            location=_place(code, "model", settings),
            hint="a model is a torch.nn.Module or a function",
        )


def _place(code: UserCode, name: str, settings: Settings) -> Location | None:
    """The line that binds `model`, else that of the class that is meant."""
    if settings.model:
        return None
    with open(code.file, "rb") as stream:
        tree = ast.parse(stream.read(), code.file)
    for wanted in ("model", name):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == wanted for target in node.targets
            ):
                return Location(
                    file=code.file,
                    line=node.lineno,
                    end_line=node.end_lineno,
                    column=node.col_offset,
                    end_column=node.end_col_offset,
                )
    return Location(file=code.file, line=code.classes.get(name, 1))


def _no_model(code: UserCode, module: ModuleType) -> UserError:
    return UserError(
        f"{Path(code.file).name} has no `model`",
        type="NoModel",
        location=Location(file=code.file, line=1),
        hint=f"{_what_is_there(vars(module), module.__name__)}. A program that compiles in other "
        f"ways is recorded by: tcw run {Path(code.file).name}",
    )


def _what_is_there(names: dict[str, Any], module: str = "") -> str:
    """Modules, classes and functions that could be the model, and the line to add."""
    modules: list[str] = []
    classes: list[str] = []
    functions: list[str] = []
    for name, value in list(names.items()):
        if name.startswith("_"):
            continue
        if isinstance(value, torch.nn.Module):
            modules.append(name)
        elif isinstance(value, type):
            own = type.__getattribute__(value, "__module__") == module or not module
            if own and issubclass(value, torch.nn.Module):
                classes.append(name)
        elif callable(value) and getattr(value, "__module__", "") == module:
            functions.append(name)
    kinds = (("modules", modules), ("classes", classes), ("functions", functions))
    there = "; ".join(f"{kind} {', '.join(found[:8])}" for kind, found in kinds if found)
    if not there:
        return "it defines no torch.nn.Module, Module class or function"
    best = modules[0] if modules else f"{classes[0]}()" if classes else functions[0]
    return f"it defines {there}: add `model = {best}`, or pass --model '{best}'"


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
