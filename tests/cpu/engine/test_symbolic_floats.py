"""Compiled: numbers that depend on sizes or tensors, and random numbers in checkpointed regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tcw.compiler.engine.backend import backend

pytestmark = pytest.mark.usefixtures("nothing_left_to_aten")

CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "scale": lambda x: (x @ x.t() * x.shape[-1] ** -0.5).softmax(-1),
    "bound": lambda x: x.clamp(min=-(x.shape[0] ** -0.5)),
    "filled": lambda x: x.masked_fill(x > 0, x.shape[0] * 0.3),
    "quotient": lambda x: torch.addcmul(x, x, x, value=1 / x.shape[0]),
    "multiple": lambda x: torch.add(x, x, alpha=x.shape[0] ** 0.5),
    "epsilon": lambda x: F.layer_norm(x, (4,), eps=1 / x.shape[0]),
    "slope": lambda x: F.leaky_relu(x, 1 / x.shape[0]),
    "exponent": lambda x: x.abs() ** (x.shape[0] * 0.25),
    "sharpness": lambda x: F.softplus(x, beta=x.shape[0] * 0.5),
    "memory": lambda x: x + torch.full((4,), x.shape[0] * 0.3),
    "range": lambda x: x[:, 0] + torch.arange(0, x.shape[0] * 0.5, 0.5),
}


def test_a_check_that_holds_for_all_sizes_is_dropped() -> None:
    def joined(x: Tensor, y: Tensor) -> Tensor:
        torch._check(x.shape[0] + y.shape[0] == y.shape[0] + x.shape[0])
        return torch.cat([x, y]).sin()

    compiled = torch.compile(joined, backend=backend, dynamic=True)
    for rows in (3, 5):
        x, y = torch.randn(rows), torch.randn(4)
        torch.testing.assert_close(compiled(x, y), joined(x, y))


@pytest.mark.parametrize("name", CASES)
def test_a_float_that_sizes_decide(name: str) -> None:
    compiled = torch.compile(CASES[name], backend=backend, dynamic=True)
    for rows in (6, 10):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), CASES[name](x))


def overwritten(x: Tensor, t: Tensor) -> Any:
    before = t[0].item()
    t.add_(1)
    return x.clamp(max=before)


ITEMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "clamp": lambda x, t: x.clamp(max=t.sum().item()),
    "filled": lambda x, t: x + torch.full((4,), t.mean().item()),
    "mask": lambda x, t: x.masked_fill(x > 0, t[0].item()),
    "slope": lambda x, t: F.leaky_relu(x, t[0].item() * 0.5),
    "compared": lambda x, t: x.bfloat16() > t[0].item(),
    "shaped": lambda x, t: torch.addcmul(x, x, x, value=t[:1].reshape(1, 1).item()),
    "integer": lambda x, t: x * t.long().sum().item(),
    "argument of a product": lambda x, t: (x.t() @ x) * t.max().item(),
    "answered": lambda x, t: (x.sin(), t.max().item()),
    "overwritten": overwritten,
}


@pytest.mark.parametrize("name", ITEMS)
def test_a_number_in_a_tensor(name: str) -> None:
    function = ITEMS[name]
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(function, backend=backend, fullgraph=True)
        for _ in range(2):
            x, t = torch.randn(6, 4), torch.randn(5)
            torch.testing.assert_close(compiled(x, t.clone()), function(x, t.clone()))


SAVED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "filled": lambda x, t: x * torch.full((4,), t.mean().item()),
    "of a size too": lambda x, t: x * torch.full((4,), t.mean().item() * x.shape[0]),
    "float": lambda x, t: x.sin() * t.mean().item(),
    "integer": lambda x, t: x.sin() * (t * 10).long().sum().item(),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", SAVED)
def test_a_number_in_a_tensor_that_the_backward_needs(name: str, dynamic: bool) -> None:
    function = SAVED[name]
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)
        for rows in (6, 6, 9):
            x, t = torch.randn(rows, 4, requires_grad=True), torch.rand(5)
            found, wanted = compiled(x, t), function(x, t)
            torch.testing.assert_close(found, wanted)
            gradients = [torch.autograd.grad(one.square().sum(), x) for one in (found, wanted)]
            torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_float_argument_that_the_backward_needs(scale: float, dynamic: bool) -> None:
    def function(x: Tensor, scale: float) -> Tensor:
        return F.elu(x * scale, scale) * (2 * scale + 1)

    compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)
    for factor in (1, 1.5, 3):
        x = torch.randn(6, 4, requires_grad=True)
        gradients = [
            torch.autograd.grad(one(x, scale * factor).exp().sum(), x)
            for one in (compiled, function)
        ]
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("draw", [F.dropout, lambda x, p: x * torch.rand_like(x)])
def test_a_checkpointed_region_draws_the_same_again(draw: Any, dynamic: bool) -> None:
    def region(x: Tensor) -> Tensor:
        return draw(x.sin() * 2, 0.3).exp()

    def function(x: Tensor) -> Tensor:
        return checkpoint(region, x, use_reentrant=False)

    def run(called: Any) -> tuple[Tensor, Tensor]:
        torch.manual_seed(1)
        x = torch.arange(24.0).reshape(6, 4).requires_grad_()
        answer = called(x)
        answer.sum().backward()
        assert x.grad is not None
        return answer.detach(), x.grad

    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    torch.testing.assert_close(run(compiled), run(function))
