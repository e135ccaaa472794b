"""Nodes computed from known values: arguments written in place, random numbers, constants."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.measure.precision.arithmetic import Double, NotComparable, Own
from tcw.compiler.measure.precision.evaluate import Evaluator

aten = torch.ops.aten


def traced(function: Any, *inputs: torch.Tensor) -> tuple[Evaluator, dict[str, fx.Node]]:
    module = make_fx(function, tracing_mode="fake")(*inputs)
    return Evaluator(module), {node.name: node for node in module.graph.nodes}


def placeholders(nodes: dict[str, fx.Node], *values: torch.Tensor) -> dict[fx.Node, Any]:
    given = [node for node in nodes.values() if node.op == "placeholder"]
    return dict(zip(given, values, strict=True))


def test_who_reads_after_a_write_finds_what_was_written() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = aten.mul.Tensor(x, 2.0)
        aten.copy_.default(x, aten.add.Tensor(x, 1.0))
        return before, aten.mul.Tensor(x, 2.0)

    x = torch.ones(4)
    evaluator, nodes = traced(function, x)
    known = placeholders(nodes, x)
    order, read = evaluator.needed([nodes["mul"], nodes["mul_1"]], known)
    assert read == list(known)
    values = evaluator.values(order, known, Own())
    assert values[nodes["mul"]].tolist() == [2.0] * 4
    assert values[nodes["mul_1"]].tolist() == [4.0] * 4
    assert x.tolist() == [1.0] * 4


def test_a_write_through_a_view_cannot_be_followed() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x = aten.clone.default(x)
        aten.copy_.default(aten.select.int(x, 0, 0), aten.select.int(x, 0, 1))
        return aten.exp.default(x)

    x = torch.ones(2, 4)
    evaluator, nodes = traced(function, x)
    with pytest.raises(NotComparable, match="writes clone in place"):
        evaluator.needed([nodes["exp"]], placeholders(nodes, x))


def test_random_numbers_end_it_and_known_ones_do_not() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.rand_like(x) * x

    x = torch.ones(4)
    evaluator, nodes = traced(function, x)
    known = placeholders(nodes, x)
    with pytest.raises(NotComparable, match="draws random numbers"):
        evaluator.needed([nodes["mul"]], known)
    known[nodes["rand_like"]] = torch.full((4,), 0.5)
    order, _ = evaluator.needed([nodes["mul"]], known)
    assert order == [nodes["mul"]]
    assert evaluator.values(order, known, Own())[nodes["mul"]].tolist() == [0.5] * 4


def test_only_what_is_asked_for_is_needed() -> None:
    x = torch.ones(4)
    evaluator, nodes = traced(lambda x: (x.exp().sin(), x.cos()), x)
    known = {**placeholders(nodes, x), nodes["exp"]: torch.ones(4)}
    order, read = evaluator.needed([nodes["sin"]], known)
    assert (order, read) == ([nodes["sin"]], [nodes["exp"]])
    with pytest.raises(NotComparable, match="was not seen"):
        evaluator.needed([nodes["cos"]], [])


def test_in_float64_no_step_rounds_to_a_narrower_dtype() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.bfloat16) * 0.1).to(torch.float32) + torch.full((4,), 0.5)

    x = torch.tensor([1.0, 1.001, 3.14159, 100.7])
    evaluator, nodes = traced(function, x)
    known = placeholders(nodes, x)
    (output,) = (node.args[0] for node in nodes.values() if node.op == "output")
    order, _ = evaluator.needed([output], known)
    found = evaluator.values(order, known, Double())[output]
    assert found.dtype is torch.float64
    assert torch.equal(found, x.double() * 0.1 + 0.5)


def test_what_float64_does_not_have_is_said() -> None:
    x = torch.ones(4)
    evaluator, nodes = traced(lambda x: x.view(torch.int32) + 1, x)
    known = placeholders(nodes, x)
    order, _ = evaluator.needed([nodes["add"]], known)
    with pytest.raises(NotComparable, match="reads the bits"):
        evaluator.values(order, known, Double())
