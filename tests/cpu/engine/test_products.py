"""The matrix-product pass: which products become oneDNN's linear layer, with the same results."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.control.gate import Gate
from tcw.compiler.rewrites import library_products as module_under_test
from tcw.compiler.rewrites.library_products import library_products
from tcw.compiler.rewrites.subject import Subject

aten = torch.ops.aten
linear = torch.ops.mkldnn._linear_pointwise.default


@pytest.fixture(autouse=True)
def amd(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch without oneDNN")
    monkeypatch.setattr(module_under_test, "_linear", lambda: linear)


def rewritten(function: Any, *inputs: torch.Tensor, gate: Gate | None = None) -> tuple[Any, int]:
    module = make_fx(function, tracing_mode="fake")(*inputs)
    moved = library_products(Subject(module, graph="0/0/inference", gate=gate or Gate()))
    module.recompile()
    return module, moved


def calls(module: Any) -> list[Any]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


ROUNDING = {"rtol": 1e-5, "atol": 1e-4}
"""The tolerance for two orders of 512 additions."""

X, W, BIAS = torch.randn(64, 256), torch.randn(512, 256), torch.randn(512)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: aten.addmm(b, x, aten.permute(w, [1, 0])),
        lambda x, w, b: aten.mm(x, aten.permute(w, [1, 0])),
    ],
)
def test_a_layer_takes_its_weight_as_it_is(function: Any) -> None:
    module, moved = rewritten(function, X, W, BIAS)
    assert moved == 1
    assert calls(module) == [linear]
    torch.testing.assert_close(module(X, W, BIAS), function(X, W, BIAS), **ROUNDING)


@pytest.mark.parametrize(
    ("function", "left", "right"),
    [
        (lambda dy, w: aten.mm(dy, w), torch.randn(64, 512), W),
        (lambda dy, x: aten.mm(aten.permute(dy, [1, 0]), x), torch.randn(64, 512), X),
    ],
)
def test_gradients_of_a_layer(function: Any, left: torch.Tensor, right: torch.Tensor) -> None:
    module, moved = rewritten(function, left, right)
    assert moved == 1
    found, wanted = module(left, right), function(left, right)
    torch.testing.assert_close(found, wanted, **ROUNDING)
    assert found.stride() == wanted.stride()


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (aten.mm.default, (torch.randn(64, 64), torch.randn(64, 64))),
        (aten.mm.default, (torch.randn(2, 2048), torch.randn(2048, 2048))),
        (aten.mm.default, (X.double(), W.double().t())),
        (aten.mm.default, (X, torch.randn(512, 512)[:, ::2].t())),
        (lambda x, w, b: aten.addmm(b, x, w, beta=2), (X, W.t(), BIAS)),
        (lambda x, w, b: aten.addmm(b, x, w), (X, W.t(), torch.randn(64, 512))),
        (lambda x, w, b: aten.addmm(b, x, w), (X, W.t(), torch.randn(1))),
    ],
)
def test_what_stays_atens(function: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    assert rewritten(function, *inputs)[1] == 0


def test_the_decision_can_be_overridden() -> None:
    gate = Gate({"tcw/0/0/inference/library/mm": "aten"})
    module, moved = rewritten(aten.mm.default, X, W.t().contiguous(), gate=gate)
    assert moved == 0
    assert aten.mm.default in calls(module)
    assert not list(gate.unknown())


def test_a_weight_that_is_used_elsewhere_keeps_its_transpose() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        turned = aten.permute(w, [1, 0])
        return aten.mm(x, turned), turned + 1

    module, moved = rewritten(function, X, W)
    assert moved == 1
    for one, other in zip(module(X, W), function(X, W), strict=True):
        torch.testing.assert_close(one, other, **ROUNDING)


def test_nothing_where_the_processor_is_none_of_amds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(module_under_test, "vendor", lambda: "GenuineIntel")
    module_under_test._linear.cache_clear()
    assert rewritten(aten.mm.default, X, W.t().contiguous())[1] == 0
    module_under_test._linear.cache_clear()
