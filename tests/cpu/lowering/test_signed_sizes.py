"""A size is natural only if torch's symbols say so: `(s0 - 5)//2` is negative for small ones."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from tcw.compiler.loops.graph import Graph
from tcw.compiler.loops.sizes import at_least, evaluate, symbol_values
from tcw.compiler.lowering.symbolic_sizes import Sizes


def rows() -> Any:
    """A symbolic size, at least 2."""
    env = ShapeEnv()
    symbol = env.create_symbol(9, ConstantSource("rows"), DimDynamic.DYNAMIC)
    return env.create_symintnode(symbol, hint=9)


def test_a_quotient_that_may_be_negative() -> None:
    n = rows()
    graph = Graph("g")
    sizes = Sizes(graph)
    sizes.show(n, "x.size(0)")
    quotient, natural = sizes.of((n - 5) // 2), sizes.of((n + 5) // 2)
    assert not at_least(quotient, 0)
    assert not at_least(0, quotient)
    assert at_least(natural, 0)
    for length in (2, 5, 9):
        values = symbol_values({}, graph.symbols, {"x": torch.empty(length)})
        assert evaluate(quotient, values) == (length - 5) // 2
        assert evaluate(natural, values) == (length + 5) // 2


def test_the_length_of_a_tensor_is_natural() -> None:
    n = rows()
    windows = (n - 5) // 2
    sizes = Sizes(Graph("g"), lambda: {windows.node.expr})
    sizes.show(n, "x.size(0)")
    assert at_least(sizes.of(windows), 0)
