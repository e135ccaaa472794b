"""`example_inputs` and `--inputs` as sets of arguments, one per call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from tcw.compiler.control.describe import class_name, describe
from tcw.compiler.control.hooks import signature_of
from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.trace.records import Location
from tcw.workbench.worker.specification import Argument as SpecifiedArgument
from tcw.workbench.worker.specification import CallSpecification, TensorSpecification

_SHAPES_OF_A_SET = (
    "a set is a tuple (positional), a dict (keyword) or a pair of both; "
    "several calls are a list of sets"
)


def input_sets(value: Any, file: str) -> list[InputSet]:
    """Read the value of `example_inputs`. Raises `UserError` if it has another form."""
    if isinstance(value, type):
        raise _not_inputs(f"example_inputs is the class {value.__name__}", file)
    if callable(value) and not isinstance(value, torch.Tensor | Mapping):
        value = value()
        if inspect.isgenerator(value):
            raise _not_inputs("example_inputs() is a generator; it has to return its value", file)
    if isinstance(value, list):
        if not value:
            raise _not_inputs("example_inputs is an empty list", file)
        return [_one(item, f"example_inputs[{number}]", file) for number, item in enumerate(value)]
    return [_one(value, "example_inputs", file)]


def _one(value: Any, name: str, file: str) -> InputSet:
    if isinstance(value, Mapping):
        return InputSet((), _keywords(value, name, file))
    if isinstance(value, tuple):
        if len(value) == 2 and type(value[0]) is tuple and isinstance(value[1], Mapping):
            return InputSet(value[0], _keywords(value[1], f"{name}[1]", file))
        return InputSet(tuple(value))
    kind = class_name(value)
    hint = ""
    if isinstance(value, torch.Tensor):
        hint = "one tensor is the tuple (x,)"
        if "[" in name:
            hint += "; two tensors of one call are the tuple (x, y), not the list [x, y]"
    raise _not_inputs(f"{name} is a {kind}; {_SHAPES_OF_A_SET}", file, hint)


def _keywords(value: Mapping[Any, Any], name: str, file: str) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise _not_inputs(f"{name} has the key {describe(key)}: keywords are names", file)
    return dict(value.items())


def _not_inputs(message: str, file: str, hint: str = "") -> UserError:
    return UserError(
        message,
        type="BadInputs",
        location=Location(file=file, line=_line_of("example_inputs", file)),
        hint=hint,
        doing="reading inputs",
    )


def _line_of(name: str, file: str) -> int:
    """The last top-level line that binds `name`, as far as the text shows, else 1."""
    found = 1
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, 1):
                if line.startswith((f"{name} ", f"{name}=", f"{name}:", f"def {name}(")):
                    found = number
    except OSError:
        pass
    return found


def generated(calls: list[CallSpecification]) -> list[InputSet]:
    """Draw the tensors of `--inputs`, always the same; the global generator is not changed."""
    generator = torch.Generator().manual_seed(0)

    def value(argument: SpecifiedArgument) -> Any:
        if isinstance(argument, TensorSpecification):
            return _draw(argument, generator)
        if isinstance(argument, tuple):
            return tuple(value(item) for item in argument)
        if isinstance(argument, list):
            return [value(item) for item in argument]
        return argument

    return [
        InputSet(
            tuple(value(argument) for argument in call.positional),
            {name: value(argument) for name, argument in call.keyword.items()},
        )
        for call in calls
    ]


def _draw(wanted: TensorSpecification, generator: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, wanted.dtype)
    low, high = wanted.low, wanted.high
    if dtype is torch.bool:
        return torch.randint(0, 2, wanted.shape, generator=generator).to(dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        first, end = (0, 2) if high is None else (int(low or 0), int(high))
        return torch.randint(first, end, wanted.shape, generator=generator, dtype=dtype)
    if high is None:
        drawn = torch.randn(wanted.shape, generator=generator, dtype=_drawn_as(dtype))
    else:
        drawn = torch.rand(wanted.shape, generator=generator, dtype=_drawn_as(dtype))
        drawn = drawn * (high - (low or 0)) + (low or 0)
    return drawn.to(dtype)


def _drawn_as(dtype: torch.dtype) -> torch.dtype:
    """Draw narrow types wide and round them, so that all dtypes get the same numbers."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def parameters(model: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of the model's forward; None if Python cannot tell."""
    target = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        return signature_of(target)
    except (TypeError, ValueError):
        return None


def named_arguments(
    signature: inspect.Signature | None, positional: tuple[Any, ...], keyword: dict[str, Any]
) -> dict[str, Any]:
    """Argument values by parameter name; `args[2]` where a position has none."""
    names: list[str] = []
    rest = "args"
    for parameter in signature.parameters.values() if signature else ():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            rest = parameter.name
    named = {
        names[number] if number < len(names) else f"{rest}[{number - len(names)}]": value
        for number, value in enumerate(positional)
    }
    return {**named, **keyword}


def check_arguments(
    model: Callable[..., Any], signature: inspect.Signature | None, inputs: InputSet
) -> None:
    """Raise `UserError` if the model's forward cannot take these arguments."""
    if signature is None:
        return
    try:
        signature.bind(*inputs.positional, **inputs.keyword)
    except TypeError as error:
        target = type(model).forward if isinstance(model, torch.nn.Module) else model
        code = getattr(inspect.unwrap(target), "__code__", None)
        location = None
        if code is not None:
            location = Location(
                file=code.co_filename, line=code.co_firstlineno, function=code.co_name
            )
        name = getattr(model, "__name__", "model")
        if isinstance(model, torch.nn.Module):
            name = f"{class_name(model)}.forward"
        takes = ", ".join(signature.parameters)
        makes = not takes and name.isidentifier()
        raise UserError(
            f"the inputs do not fit {name}({takes}): {error}",
            type="TypeError",
            location=location,
            hint=f"if {name}() returns the model: --model '{name}()'" if makes else "",
            doing="reading inputs",
        ) from error


def with_tensors(
    sets: list[InputSet], wanted: tuple[str, ...], signature: inspect.Signature | None
) -> list[InputSet]:
    """The sets with the numbers of these arguments as tensors without dimensions, float32 for a
    float. Arguments that are tensors already, or that a call omits, stay. Raises `UserError` if no
    set has such an argument, or it is not a number."""
    met: set[str] = set()
    known: set[str] = set()

    def made(name: str, value: Any) -> Any:
        known.add(name)
        if name not in wanted:
            return value
        met.add(name)
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float | complex):
            raise _bad_argument(
                "BadTensor", f"--as-tensor: {name} is a {class_name(value)}, not a number"
            )
        return torch.tensor(value)

    found = []
    for input_set in sets:
        names = list(named_arguments(signature, input_set.positional, {}))
        positional = tuple(map(made, names, input_set.positional))
        found.append(InputSet(positional, {k: made(k, v) for k, v in input_set.keyword.items()}))
    missing = [name for name in wanted if name not in met]
    if missing:
        words = f"--as-tensor: no call has an argument {missing[0]!r}"
        raise _bad_argument("BadTensor", words, sorted(known))
    return found


def _bad_argument(kind: str, message: str, names: Iterable[str] = ()) -> UserError:
    known = ", ".join(names)
    hint = f"its arguments are {known}" if known else ""
    return UserError(message, type=kind, hint=hint, doing="reading inputs")


def mark_dynamic(marks: tuple[str, ...], named: dict[str, Any]) -> None:
    """Apply `NAME:DIM` marks (name or position) to the tensors of one call."""
    names = list(named)
    for mark in marks:
        name, _, dimension = mark.rpartition(":")
        if not name or not dimension.lstrip("-").isdigit():
            raise _bad_argument("BadMark", f"--mark-dynamic {mark!r}: expected NAME:DIM, e.g. x:0")
        if name not in named and name.isdigit() and int(name) < len(names):
            name = names[int(name)]
        if name not in named:
            words = f"--mark-dynamic {mark}: no argument {name!r}"
            raise _bad_argument("BadMark", words, names)
        tensor = named[name]
        if not isinstance(tensor, torch.Tensor):
            words = f"--mark-dynamic {mark}: {name} is a {class_name(tensor)}, not a tensor"
            raise _bad_argument("BadMark", words)
        number = int(dimension)
        if not -tensor.dim() <= number < tensor.dim():
            sizes = f"{tensor.dim()} dimensions {tuple(tensor.shape)}"
            raise _bad_argument("BadMark", f"--mark-dynamic {mark}: {name} has {sizes}")
        torch._dynamo.mark_dynamic(tensor, number % tensor.dim())
