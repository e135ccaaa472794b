"""The vector-product pass: products with a vector become loops, at least as exact as ATen's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.control.gate import Gate
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.rewrites.vector_products import vector_products

aten = torch.ops.aten
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
PRODUCTS: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "dot": (torch.dot, ((300,), (300,))),
    "vdot": (torch.vdot, ((300,), (300,))),
    "mv": (torch.mv, ((40, 300), (300,))),
    "mv transposed": (lambda a, x: a.t() @ x, ((300, 40), (300,))),
    "dot by row": (torch.bmm, ((7, 1, 300), (7, 300, 1))),
    "vector side right": (torch.bmm, ((7, 20, 300), (7, 300, 1))),
    "vector side left": (torch.bmm, ((7, 1, 300), (7, 300, 20))),
    "an empty sum": (torch.bmm, ((7, 1, 0), (7, 0, 20))),
}


def rewritten(function: Any, *inputs: torch.Tensor, gate: Gate | None = None) -> tuple[Any, int]:
    module = make_fx(function, tracing_mode="fake")(*inputs)
    moved = vector_products(Subject(module, graph="0/0/inference", gate=gate or Gate()))
    module.recompile()
    return module, moved


def inputs_of(name: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape).to(dtype) for shape in PRODUCTS[name][1]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_rewritten_graph_is_as_exact(name: str, dtype: torch.dtype) -> None:
    function, inputs = PRODUCTS[name][0], inputs_of(name, dtype)
    module, moved = rewritten(function, *inputs)
    assert moved == 1
    found, eager = module(*inputs), function(*inputs)
    exact = function(*(one.double() for one in inputs))
    assert (found.shape, found.dtype) == (eager.shape, eager.dtype)
    if not exact.numel():
        return
    errors = [float((one.double() - exact).abs().max()) for one in (found, eager)]
    terms = function(*(one.double().abs() for one in inputs))
    rounding = torch.finfo(dtype).eps * float(terms.max())
    assert errors[0] <= max(2 * errors[1], rounding)


@pytest.mark.parametrize(
    ("function", "shapes", "dtype"),
    [
        (torch.bmm, ((7, 2, 30), (7, 30, 2)), torch.float32),
        (torch.mm, ((1, 30), (30, 20)), torch.float32),
        (torch.mv, ((3, 30), (30,)), torch.complex64),
        (torch.mv, ((3, 30), (30,)), torch.int8),
    ],
)
def test_other_products_stay(
    function: Any, shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype
) -> None:
    inputs = [torch.ones(shape).to(dtype) for shape in shapes]
    assert rewritten(function, *inputs)[1] == 0


def test_it_is_a_decision() -> None:
    x, y = torch.randn(30), torch.randn(30)
    gate = Gate({"tcw/0/0/inference/library/dot": "aten"})
    assert rewritten(torch.dot, x, y, gate=gate)[1] == 0
    assert [(one.decision.default, one.choice) for one in gate.decided] == [("loops", "aten")]
    assert rewritten(torch.dot, x, y)[1] == 1


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_integers_wrap_as_eagers_do(name: str, dtype: torch.dtype) -> None:
    most = torch.iinfo(dtype).max
    inputs = [torch.randint(-most, most, shape, dtype=dtype) for shape in PRODUCTS[name][1]]
    function = PRODUCTS[name][0]
    assert torch.equal(torch.compile(function, backend="tcw")(*inputs), function(*inputs))


@pytest.mark.parametrize("name", PRODUCTS)
def test_compiled_with_gradients(name: str) -> None:
    function, inputs = PRODUCTS[name][0], inputs_of(name, torch.float32)
    left, right = ([one.clone().requires_grad_() for one in inputs] for _ in range(2))
    found, eager = torch.compile(function, backend="tcw")(*left), function(*right)
    torch.testing.assert_close(found, eager, rtol=1e-5, atol=1e-4)
    found.square().sum().backward()
    eager.square().sum().backward()
    for one, other in zip(left, right, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-3)
