"""Inference graphs that are one C++ function are called without AOTAutograd's wrapper."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._functorch._aot_autograd import runtime_wrappers
from torch.utils._pytree import tree_leaves

from tcw.compiler.engine import autograd_function
from tcw.compiler.engine.backend import backend

pytestmark = pytest.mark.skipif(
    bool(autograd_function.HOOK.missing()), reason="not available in this torch"
)


def wrapped(function: Callable[..., Any], *inputs: Tensor) -> bool:
    """Whether a later call of the compiled function passes AOTAutograd's wrapper; the results of
    all calls are checked."""
    torch._dynamo.reset()
    expected = function(*(one.clone() for one in inputs))
    compiled: Any = torch.compile(function, backend=backend, fullgraph=True)
    seen: list[str] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    for number in range(2):
        given = [one.clone() for one in inputs]
        sys.setprofile(look if number else None)
        try:
            found = compiled(*given)
        finally:
            sys.setprofile(None)
        torch.testing.assert_close(found, expected)
        assert not any(leaf.requires_grad for leaf in tree_leaves(found))
    assert "forward" in seen, "AOTAutograd was not called at all"
    return "runtime_wrapper" in seen


def new(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return (x + y).softmax(-1), (x * y).sum()


def overlapping(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    total = x + y
    return total, total[1:]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", [new, overlapping])
def test_new_tensors_are_returned_directly(function: Callable[..., Any], grad: bool) -> None:
    with torch.set_grad_enabled(grad):
        assert not wrapped(function, torch.randn(5, 7), torch.randn(5, 7))


class EffectTokensWrapper:
    """Torch 2.11's, for a graph without tokens."""

    def post_compile(self, compiled_fn: Any, *_: Any, **keywords: Any) -> Any:
        @wraps(compiled_fn)
        def inner_fn(args: list[Any]) -> Any:
            return compiled_fn(args)

        return inner_fn


class FunctionalizedRngRuntimeWrapper:
    """Torch 2.11's, for a graph without random states."""

    def post_compile(self, compiled_fn: Any, *_: Any, **keywords: Any) -> Any:
        @wraps(compiled_fn)
        def wrapper(args: list[Any]) -> Any:
            return compiled_fn(args)

        return wrapper


def test_idle_wrappers_are_no_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    for stand_in in (EffectTokensWrapper, FunctionalizedRngRuntimeWrapper):
        owner = getattr(runtime_wrappers, stand_in.__name__)
        monkeypatch.setattr(owner, "post_compile", stand_in.post_compile)
    assert not wrapped(new, torch.randn(5, 7), torch.randn(5, 7))


def test_results_share_memory_as_in_eager() -> None:
    compiled: Any = torch.compile(overlapping, backend=backend)
    whole, rest = compiled(torch.randn(5, 7), torch.randn(5, 7))
    assert rest.data_ptr() == whole[1:].data_ptr()


def written(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    return x * 2


def viewed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x[1:], x + y


def product(x: Tensor, y: Tensor) -> Tensor:
    return torch.relu(x @ y)


@pytest.mark.parametrize("function", [written, viewed, product])
def test_other_graphs_have_the_wrapper(function: Callable[..., Any]) -> None:
    assert wrapped(function, torch.randn(6, 6), torch.randn(6, 6))


def test_a_graph_under_autocast_has_the_wrapper() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert wrapped(new, torch.randn(5, 7), torch.randn(5, 7))


def test_a_mutation_is_counted() -> None:
    compiled: Any = torch.compile(written, backend=backend)
    x, y = torch.randn(4), torch.randn(4)
    compiled(x, y)
    before = x._version
    compiled(x, y)
    assert x._version > before


def test_tensors_without_memory() -> None:
    torch._dynamo.reset()
    compiled: Any = torch.compile(new, backend=backend)
    x = torch.randn(5, 7)
    compiled(x, x)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        found = compiled(fake, fake)
    assert [tuple(one.shape) for one in found] == [(5, 7), ()]
