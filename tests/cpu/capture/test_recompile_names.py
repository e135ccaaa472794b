"""Names in recompiles: of what a wrapper passes on, and of a function's arguments."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from tcw.compiler.trace.records import Recompile
from tests.cpu.capture.conftest import Capture
from tests.cpu.capture.decorated import passing
from tests.cpu.capture.recompiling import second_call

x = torch.ones(4, 8)


class Wrapped(torch.nn.Module):
    @passing
    def forward(
        self,
        first: torch.Tensor,
        second: float = 1.0,
    ) -> torch.Tensor:
        return first.sin() * second


PASSED: dict[str, tuple[Any, Any, str, str, str, int]] = {
    "by position": (
        lambda f: f(x), lambda f: f(torch.ones(6, 8)), "first.size(0)", "L['args'][0]",
        "torch._dynamo.mark_dynamic(first, 0)", 4,
    ),
    "by name": (
        lambda f: f(x, second=1.0), lambda f: f(x, second=2.0), "second", "L['kwargs']['second']",
        "second = torch.tensor(second)", 5,
    ),
    "in another way": (
        lambda f: f(x, second=1.0), lambda f: f(x, 1.0), "len(args)", "L['args']", "", -1,
    ),
    "other names": (
        lambda f: f(x), lambda f: f(x, second=1.0), "len(kwargs)", "L['kwargs']", "", -1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", PASSED)
def test_a_wrappers_arguments_are_named_as_the_caller_passes_them(
    change: str, capture: Capture
) -> None:
    """The library's file is not the user's, so the argument is shown in the signature."""
    capture.recorder.user_root = "/nowhere"
    first, second, name, source, code, line = PASSED[change]
    record = second_call(capture, Wrapped(), first, second)
    (failed,) = record.failed
    assert (failed.name, failed.source) == (name, source), "torch's source stays as it is"
    assert record.function == "forward"
    assert record.advice[0].code == code
    assert record.advice == failed.advice
    assert failed.location == record.location
    if line >= 0:
        start = inspect.getsourcelines(Wrapped.forward)[1]
        assert failed.location is not None
        assert failed.location.line == start + line - 1
        columns = slice(failed.location.column, failed.location.end_column)
        assert failed.source_line[columns] == name.partition(".")[0]
    else:
        assert record.advice[0].text.startswith("Pass the same")


@pytest.mark.parametrize(
    ("called", "function", "name"),
    [
        (torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Tanh()), "forward", "input.size(0)"),
        (torch.nn.functional.softsign, "softsign", "input.size(0)"),
    ],
)
def test_what_dynamo_wraps_itself_is_named_by_what_is_inside(
    called: Any, function: str, name: str, capture: Capture
) -> None:
    """Dynamo puts a frame of its own, `inner`, around what torch defines."""
    record = second_call(capture, called, lambda f: f(x), lambda f: f(torch.ones(5, 8)))
    assert (record.function, record.failed[0].name) == (function, name)
    assert record.advice[0].code == "torch._dynamo.mark_dynamic(input, 0)"


class Around(torch.nn.Module):
    """Two forwards under one decorator: the break sends the inner one through its own frame."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Broken()

    @passing
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, 1.0) * 2


class Broken(torch.nn.Module):
    @passing
    def forward(self, x: torch.Tensor, *rest: float) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()


def test_functions_under_one_decorator_share_its_wrapper(capture: Capture) -> None:
    """That one passes more arguments by position is chance; the function is the reason."""
    capture.call(lambda: torch.compile(Around(), backend="eager")(x))
    (failed,) = capture.all(Recompile)[0].failed
    assert (failed.kind, failed.name) == ("CLOSURE_MATCH", "function")
    assert (failed.expected.split()[:2], failed.seen.split()[:2]) == (
        ["function", "Around.forward"],
        ["function", "Broken.forward"],
    )
    assert failed.advice[0].text.startswith("Call once with each function during warm-up")


def test_arguments_of_a_function_are_named_by_the_call(capture: Capture) -> None:
    """A plain wrapper has no useful signature, but the worker knows what it passes."""

    def star(*args):
        return args[0].sin() + args[1].sin()

    compiled = torch.compile(star, backend="eager")
    shift, wider = torch.ones(4, 1), torch.ones(4, 8)
    capture.recorder.arguments = {"image": x, "shift": shift}
    capture.call(lambda: compiled(x, shift))
    capture.recorder.arguments = {"image": x, "shift": wider}
    capture.call(lambda: compiled(x, wider))
    (record,) = capture.all(Recompile)
    assert record.failed[0].name == "shift.size(1)"
    capture.recorder.arguments = {"a": x, "b": x}
    wide = torch.ones(4, 9)
    capture.call(lambda: compiled(wide, wide))
    assert capture.all(Recompile)[-1].failed[0].name == "args[0].size(1)", "unknown stays torch's"


def test_what_was_computed_before_a_graph_break_is_no_argument(capture: Capture) -> None:
    """A mark on an argument holds behind the break; nobody can mark what was computed."""

    def argument(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x.cos()

    def computed(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    def advice(function: Any) -> str:
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="eager")
        for size in (4, 6):
            given = torch.ones(size, 8)
            capture.recorder.arguments = {"x": given}
            capture.call(lambda given=given: compiled(given))
        return capture.all(Recompile)[-1].advice[0].code

    assert advice(argument) == "torch._dynamo.mark_dynamic(x, 0)"
    assert advice(computed) == "torch.compile(model, dynamic=True)"


def test_sizes_that_were_equal_by_chance(capture: Capture) -> None:
    """No line compares them; with torch's setting, it compiles once."""

    def calls(compiled: Any) -> None:
        for shape in ((64, 64), (96, 64), (32, 16)):
            capture.call(lambda shape=shape: compiled(torch.ones(shape)))

    calls(torch.compile(lambda x: x.sin(), backend="eager", dynamic=True))
    (again,) = capture.all(Recompile)
    assert again.advice[0].code == "torch.fx.experimental._config.use_duck_shape = False"
    assert "compares" not in again.advice[0].text
    torch._dynamo.reset()
    with torch.fx.experimental._config.patch(use_duck_shape=False):
        calls(torch.compile(lambda x: x.sin(), backend="eager", dynamic=True))
    assert len(capture.all(Recompile)) == 1


class First(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


class Second(First):
    pass


class Holder(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


@pytest.mark.parametrize(
    ("other", "expected", "seen"),
    [
        (Second, "First", "Second"),
        (type("First", (First,), {"__module__": "other"}), f"{__name__}.First", "other.First"),
    ],
)
def test_two_classes_are_named_alike(
    capture: Capture, other: type, expected: str, seen: str
) -> None:
    """By their names, with modules only where those are equal."""
    holder = Holder()
    compiled = torch.compile(holder, backend="eager")
    for inner in (First, other):
        holder.inner = inner()
        capture.call(lambda: compiled(x))
    (failed,) = capture.all(Recompile)[-1].failed
    assert (failed.expected, failed.seen) == (expected, seen)
