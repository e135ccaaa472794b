"""Products on a GPU padded to whole rows of 16 bytes; the rewritten graph runs here on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tcw.compiler.rewrites.aligned_products import ALIGNED, aligned_products
from tcw.compiler.rewrites.subject import Subject
from tests.cpu.engine.test_cuda_graphs import graph_of

aten = torch.ops.aten


def mm(left: Any, right: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: aten.mm(left(x), right(x))


def lying(rows: int, columns: int, turned: bool = False) -> Any:
    """A matrix on the first elements of the input, or its transpose."""
    return lambda x: (
        x[: rows * columns].view(columns, rows).t()
        if turned
        else x[: rows * columns].view(rows, columns)
    )


BIG = 1024

CASES = {
    "vocabulary": (mm(lying(BIG, BIG), lying(BIG, 1021, turned=True)), True),
    "columns": (mm(lying(BIG, BIG), lying(BIG, 1021)), True),
    "inner": (mm(lying(BIG, 1021), lying(1021, BIG)), True),
    "both turned": (mm(lying(1021, BIG, turned=True), lying(BIG, 1019, turned=True)), True),
    "all odd": (mm(lying(1021, 1019, turned=True), lying(1019, 1013, turned=True)), True),
    "bias": (
        lambda x: aten.addmm(x[:1021], lying(BIG, BIG)(x), lying(BIG, 1021)(x)),
        True,
    ),
    "scaled": (
        lambda x: aten.addmm(x[:1021], lying(BIG, BIG)(x), lying(BIG, 1021)(x), beta=2, alpha=0.5),
        True,
    ),
    "aligned": (mm(lying(BIG, BIG), lying(BIG, 1032)), False),
    "odd rows matter not": (mm(lying(1021, BIG), lying(BIG, BIG)), False),
    "turned weight of aligned inner rows, few columns": (mm(lying(BIG, BIG), lying(BIG, 7)), False),
    "short inner": (mm(lying(4096, 256), lying(256, 255)), False),
}


@pytest.mark.parametrize("name", CASES)
def test_products(name: str) -> None:
    function, padded = CASES[name]
    x = torch.randn(1 << 21).bfloat16() / 8
    module = graph_of(function, x)
    expected = module.forward(x)
    assert aligned_products(Subject(module, graph="0/0/inference")) == padded
    module.recompile()
    for node in module.graph.nodes:
        if padded and node.target is aten.mm.default:
            sizes = [arg.meta["val"].shape for arg in (*node.args, node)]
            turned = node.args[0].meta["val"].stride(0) == 1
            lengths = [*sizes[1], sizes[0][1], *(sizes[0] if turned else ())]
            assert not any(length % ALIGNED for length in lengths)
    found = module.forward(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


def test_a_gradient_that_is_read_three_times_is_padded_once() -> None:
    """By the products for what is before a layer and for its weight, and by the bias's sum."""

    def backward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        gradient = lying(BIG, 1013)(x) * 2
        weight, before = lying(1013, BIG)(x), lying(BIG, BIG)(x)
        return aten.mm(gradient, weight), aten.mm(gradient.t(), before), gradient.sum(0)

    x = torch.randn(1 << 21).bfloat16() / 8
    module = graph_of(backward, x)
    expected = module.forward(x)
    assert aligned_products(Subject(module, graph="0/0/backward")) == 2
    module.recompile()
    pads = [n for n in module.graph.nodes if n.target is aten.constant_pad_nd.default]
    own = [n for n in pads if n.meta["val"].shape == (BIG, 1016)]
    (gradient,) = {n.args[0] for n in own}
    assert len(own) == 1
    assert set(gradient.users) == set(own)
    module.graph.lint()
    for one, other in zip(module.forward(x), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)


def test_other_dtypes_and_the_cpu_are_left_alone() -> None:
    function = mm(lying(BIG, BIG), lying(BIG, 1021))
    assert (
        aligned_products(Subject(graph_of(function, torch.randn(1 << 21)), graph="0/0/inference"))
        == 0
    )
