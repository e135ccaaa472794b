"""A GPU's fused attentions and their derivatives in float64."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch import fx
from torch.nn import functional as F

from tcw.compiler.measure.precision.arithmetic import double, is_auxiliary

aten: Any = torch.ops.aten
Q, K, V, GRAD = (torch.randn(2, 4, 8, 16) for _ in range(4))
BIAS = torch.randn(2, 4, 8, 8)


def carried_out(target: Any, *args: Any, **kwargs: Any) -> Any:
    graph = fx.Graph()
    node = graph.call_function(target, args, kwargs)
    wide = [arg.double() if isinstance(arg, torch.Tensor) else arg for arg in args]
    return double(node, wide, kwargs)


def expected(bias: Any = None, causal: bool = False, scale: Any = None) -> list[torch.Tensor]:
    given = [one.double().requires_grad_() for one in (Q, K, V)]
    wide = bias.double().requires_grad_() if bias is not None else None
    out = F.scaled_dot_product_attention(*given, wide, is_causal=causal, scale=scale)
    wanted = [*given, *([wide] if wide is not None else [])]
    return [out, *torch.autograd.grad(out, wanted, GRAD.double())]


def same(found: Any, right: Any) -> None:
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one, other)


def test_flash() -> None:
    out, *gradients = expected(causal=True, scale=0.3)
    forward = aten._scaled_dot_product_flash_attention.default
    found = carried_out(forward, Q, K, V, 0.0, True, scale=0.3)
    same(found[:1], [out])
    assert len(found) == len(forward._schema.returns)
    rest = [Q, None, None, None, 8, 8, 0.0, True, None, None]
    backward = aten._scaled_dot_product_flash_attention_backward.default
    same(carried_out(backward, GRAD, Q, K, V, *rest, scale=0.3), gradients)


def test_memory_efficient() -> None:
    out, *gradients = expected(BIAS)
    forward = aten._scaled_dot_product_efficient_attention.default
    found = carried_out(forward, Q, K, V, BIAS, True)
    same(found[:1], [out])
    assert len(found) == len(forward._schema.returns)
    backward = aten._scaled_dot_product_efficient_attention_backward.default
    rest = [Q, None, None, None, 0.0, [True] * 4]
    same(carried_out(backward, GRAD, Q, K, V, BIAS, *rest), gradients)
    without = carried_out(backward, GRAD, Q, K, V, None, *rest[:5], [True] * 3 + [False], True)
    same(without[:3], expected(causal=True)[1:])
    assert without[3] is None


def test_cudnn() -> None:
    out, *gradients = expected(causal=True)
    forward = aten._scaled_dot_product_cudnn_attention.default
    found = carried_out(forward, Q, K, V, None, True, 0.0, True)
    same(found[:1], [out])
    assert len(found) == len(forward._schema.returns)
    backward = aten._scaled_dot_product_cudnn_attention_backward.default
    rest = [Q, None, None, None, None, None, None, 8, 8, 0.0, True]
    same(carried_out(backward, GRAD, Q, K, V, *rest), gradients)


def test_fewer_heads_of_keys() -> None:
    few = K[:, :2], V[:, :2]
    found = carried_out(aten._scaled_dot_product_flash_attention.default, Q, *few)
    wide = [one.double() for one in (Q, *few)]
    right = F.scaled_dot_product_attention(*wide, enable_gqa=True)
    torch.testing.assert_close(found[0], right)


@pytest.mark.parametrize(("place", "auxiliary"), [(0, False), (1, True), (6, True)])
def test_what_is_no_result(place: int, auxiliary: bool) -> None:
    graph = fx.Graph()
    made = graph.call_function(aten._scaled_dot_product_flash_attention.default, ())
    getitem = operator.getitem
    node = graph.call_function(getitem, (made, place))
    assert is_auxiliary(node) is auxiliary
    other = graph.call_function(aten.aminmax.default, ())
    assert not is_auxiliary(graph.call_function(getitem, (other, 1)))
