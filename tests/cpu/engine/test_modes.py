"""The ways to use torch.compile, each with eager's results."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tcw.compiler.engine.backend import backend

X = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))


def compiled(model: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(model, backend=backend, **options)  # type: ignore[no-any-return]


def test_a_second_derivative_is_refused_as_torch_refuses_it() -> None:
    x = torch.randn(4, requires_grad=True)
    (slope,) = torch.autograd.grad(
        compiled(lambda x: (x * torch.tanh(x)).sum())(x), x, create_graph=True
    )
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        slope.sum().backward()


def test_batches_of_all_sizes() -> None:
    model = nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.LayerNorm(8))
    function = compiled(model)
    for rows in (2, 3, 4, 1, 0):
        x, twin = (torch.ones(rows, 16).requires_grad_() for _ in "ab")
        got, wanted = function(x), model(twin)
        torch.testing.assert_close(got, wanted)
        got.sum().backward()
        wanted.sum().backward()
        torch.testing.assert_close(x.grad, twin.grad)


def test_numbers_as_inputs() -> None:
    def model(x: torch.Tensor, a: float, b: int) -> tuple[torch.Tensor, float, int]:
        return torch.sin(x * a) + b, a * 2, b + 1

    function = compiled(model, dynamic=True)
    for a, b in ((1.5, 2), (2.25, 3), (0.1, 7)):
        torch.testing.assert_close(function(X, a, b), model(X, a, b))


@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.func.grad(lambda x: (x.tanh() ** 2).sum())(x),
        lambda x: torch.func.vmap(lambda row: row.softmax(0) * row.sum())(x),
        lambda x: torch.func.hessian(lambda row: (row**3).sum())(x[0, :5]),
        lambda x: torch.func.jvp(lambda row: row.sin() * row, (x,), (x,)),
    ],
    ids=["grad", "vmap", "hessian", "jvp"],
)
def test_functional_transforms(model: Callable[..., Any]) -> None:
    torch.testing.assert_close(compiled(model)(X), model(X))


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (torch.optim.AdamW, {"foreach": True, "amsgrad": True}),
    ],
)
def test_steps_of_an_optimizer(optimizer: Any, options: dict[str, Any]) -> None:
    ours = nn.Linear(8, 3)
    theirs = copy.deepcopy(ours)
    runs = []
    for model in (ours, theirs):
        runs.append((model, optimizer(model.parameters(), lr=0.1, **options)))
    steps = [compiled(runs[0][1].step), runs[1][1].step]
    for _ in range(3):
        for (model, one), step in zip(runs, steps, strict=True):
            one.zero_grad()
            model(X[:, :8]).square().sum().backward()
            step()
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_autocast() -> None:
    model = nn.Sequential(nn.Linear(16, 8), nn.LayerNorm(8), nn.GELU())
    with torch.autocast("cpu", torch.bfloat16):
        got, wanted = compiled(model)(X), model(X)
    assert got.dtype == wanted.dtype
    torch.testing.assert_close(got, wanted, atol=1e-2, rtol=1e-2)


def test_activation_checkpointing_with_random_numbers() -> None:
    from torch.utils.checkpoint import checkpoint

    inner = nn.Linear(16, 16)

    def model(x: torch.Tensor) -> Any:
        def part(y: torch.Tensor) -> torch.Tensor:
            return functional.dropout(torch.sin(inner(y)), 0.3) * y

        return checkpoint(part, x, use_reentrant=False)

    found = []
    for function in (compiled(model), model):
        x = X.clone().requires_grad_()
        torch.manual_seed(3)
        result = function(x)
        result.sum().backward()
        found.append((result, x.grad))
    torch.testing.assert_close(*found)


def test_a_custom_function() -> None:
    class Clamped(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            context.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(context: Any, slope: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            (x,) = context.saved_tensors
            return slope * x.clamp(0, 1)

    def model(x: torch.Tensor) -> torch.Tensor:
        return Clamped.apply(x * 2).sum()  # type: ignore[no-any-return]

    slopes = []
    for function in (compiled(model, fullgraph=True), model):
        x = X.clone().requires_grad_()
        function(x).backward()
        slopes.append(x.grad)
    torch.testing.assert_close(*slopes)


def test_threads_share_a_compiled_function() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ x.t(), -1) + x.sum()

    function, wrong = compiled(model), []

    def run(x: torch.Tensor) -> None:
        try:
            for _ in range(10):
                torch.testing.assert_close(function(x), model(x))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(X * place,)) for place in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_number_of_threads_changes_no_bit() -> None:
    function = compiled(lambda x: x.softmax(-1).sum(0) + x.sum() + x.var())
    x = torch.randn(1024, 300)
    before, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 4, 1):
            torch.set_num_threads(count)
            results.append(function(x))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(results[0], other) for other in results)


def test_a_copied_module_has_weights_of_its_own() -> None:
    model = nn.Linear(16, 4)
    function = compiled(model)
    torch.testing.assert_close(function(X), model(X))
    other = copy.deepcopy(function)
    with torch.no_grad():
        other.weight.zero_()  # type: ignore[attr-defined]
    torch.testing.assert_close(other(X), model.bias.expand(8, 4))
    torch.testing.assert_close(function(X), model(X))
