"""Activations and their gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from tcw.compiler.loops.expressions import Op, walk
from tcw.compiler.loops.graph import Map
from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, check_each, corners, grid

pytestmark = pytest.mark.usefixtures("whole")

Unary = Callable[[torch.Tensor], torch.Tensor]

ACTIVATIONS: dict[str, Unary] = {
    **{
        name: getattr(functional, name)
        for name in (
            *("relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "hardshrink", "softshrink"),
            *("leaky_relu", "elu", "celu", "selu", "silu", "mish", "gelu", "logsigmoid"),
            *("softplus", "softsign", "tanhshrink"),
        )
    },
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "threshold": lambda x: functional.threshold(x, 0.3, -1.0),
    "elu in full": lambda x: torch.ops.aten.elu(x, 1.5, 2.0, 0.5),
    "celu with alpha": lambda x: functional.celu(x, 2.0),
    "leaky_relu with a slope": lambda x: functional.leaky_relu(x, 0.2),
    "gelu by tanh": lambda x: functional.gelu(x, approximate="tanh"),
}
INSIDE = 2e-2
"""Relative tolerance for 16 bits, for gradients that ATen rounds after each step."""


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_corners(name: str) -> None:
    """Without infinities for gelu: there oneDNN returns NaN, and ATen's own kernel inf."""
    finite = slice(0, 18)
    check_each(
        ACTIVATIONS[name],
        ((corners(d)[finite] if "gelu" in name else corners(d),) for d in FLOATS),
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients(name: str) -> None:
    wide, narrow = (FLOATS[:2], FLOATS[2:])
    function = ACTIVATIONS[name]
    check_each(function, (((grid(d, 4, 6) * 3).requires_grad_(),) for d in wide))
    check_each(
        function,
        (((grid(d, 4, 6) * 3).requires_grad_(),) for d in narrow),
        rtol=INSIDE,
        atol=INSIDE,
    )


def test_prelu() -> None:
    x, weight = grid(torch.float32, 2, 3, 4).requires_grad_(), grid(torch.float32, 3)
    lowered(lambda x, w: functional.prelu(x, w), x, weight.requires_grad_(), calls=None)


def test_mish_takes_one_exponential_each_way() -> None:
    x = torch.cat([torch.linspace(-100, 100, 401), torch.tensor([float("inf"), -1e30])])
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        result = lowered(torch.nn.functional.mish, x.to(dtype).requires_grad_())
        assert len(result.graphs) == 2
        for graph in result.graphs:
            names = [
                part.name
                for node in graph.nodes
                if isinstance(node, Map)
                for part in walk(node.expression)
                if isinstance(part, Op)
            ]
            assert not {"tanh", "log1p", "sigmoid"} & {*names}
            assert "exp" in names
