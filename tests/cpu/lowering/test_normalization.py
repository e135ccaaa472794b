"""Softmax and the normalisations, forward and backward, whole and decomposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, check_each, grid

Function = Callable[..., Any]

NORMALIZATIONS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "softmax": (lambda x: torch.softmax(x, -1), ((3, 4, 5),)),
    "softmax of columns": (lambda x: torch.softmax(x, 0), ((3, 4),)),
    "log_softmax": (lambda x: torch.log_softmax(x, 1), ((3, 4, 5),)),
    "layer_norm": (lambda x, w, b: functional.layer_norm(x, (6,), w, b), ((2, 3, 6), (6,), (6,))),
    "layer_norm of planes": (lambda x: functional.layer_norm(x, (3, 6)), ((2, 3, 6),)),
    "layer_norm of a row": (lambda x, w: functional.layer_norm(x, (6,), w), ((6,), (6,))),
    "rms_norm": (lambda x, w: functional.rms_norm(x, (6,), w), ((2, 3, 6), (6,))),
    "rms_norm with eps": (lambda x: functional.rms_norm(x, (6,), None, 0.1), ((4, 6),)),
    "group_norm": (
        lambda x, w, b: functional.group_norm(x, 2, w, b),
        ((2, 4, 3, 5), (4,), (4,)),
    ),
    "group_norm without weight": (lambda x: functional.group_norm(x, 2), ((2, 4, 5),)),
    "batch_norm": (
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        ((3, 4, 5), (4,), (4,)),
    ),
    "instance_norm": (lambda x: functional.instance_norm(x), ((2, 3, 4, 5),)),
}
NARROW = {"rtol": 5e-2, "atol": 5e-2}
WIDE = {"rtol": 1e-4, "atol": 1e-5}


def tensors(shapes: tuple[tuple[int, ...], ...], dtype: Dtype) -> tuple[torch.Tensor, ...]:
    return tuple((grid(dtype, *shape) + 0.5).requires_grad_() for shape in shapes)


@pytest.fixture(params=["whole", "apart"])
def _decomposed(request: pytest.FixtureRequest) -> None:
    if request.param == "whole":
        request.getfixturevalue("whole")


@pytest.mark.usefixtures("_decomposed")
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_output_and_gradients(name: str) -> None:
    function, shapes = NORMALIZATIONS[name]
    check_each(function, (tensors(shapes, dtype) for dtype in FLOATS[:2]), **WIDE)
    check_each(function, (tensors(shapes, dtype) for dtype in FLOATS[2:]), **NARROW)


@pytest.mark.usefixtures("_decomposed")
def test_running_statistics() -> None:
    def train(x: Any, mean: Any, variance: Any) -> Any:
        mean, variance = mean.clone(), variance.clone()
        return functional.batch_norm(x, mean, variance, training=True), mean, variance

    def evaluate(x: Any, mean: Any, variance: Any, w: Any) -> Any:
        return functional.batch_norm(x, mean, variance, w)

    x, mean, variance = grid(torch.float32, 3, 4, 5), torch.zeros(4), torch.ones(4)
    lowered(train, x, mean, variance, **WIDE)
    lowered(evaluate, x, mean, variance, grid(torch.float32, 4), **WIDE)
    with_gradient = grid(torch.float32, 3, 4, 5).requires_grad_()
    lowered(evaluate, with_gradient, mean, variance, grid(torch.float32, 4), **WIDE)


@pytest.mark.usefixtures("_decomposed")
def test_channels_last() -> None:
    x = grid(torch.float32, 2, 4, 3, 5).to(memory_format=torch.channels_last).requires_grad_()
    lowered(lambda x: functional.group_norm(x, 2), x, **WIDE)
    lowered(lambda x: functional.batch_norm(x, None, None, training=True), x, **WIDE)
    lowered(lambda x: torch.softmax(x, 1), x, strides=False, **WIDE)


@pytest.mark.usefixtures("_decomposed")
def test_rows_of_infinities() -> None:
    inf = float("inf")
    x = torch.tensor([[-inf, -inf], [inf, 1.0], [-inf, 0.0], [float("nan"), 0.0]])
    lowered(lambda x: (torch.softmax(x, 1), torch.log_softmax(x, 1)), x)


@pytest.mark.usefixtures("whole")
def test_a_safe_softmax_of_infinities_is_zero() -> None:
    inf = float("inf")
    x = torch.tensor([[-inf, -inf], [inf, 1.0], [-inf, 0.0], [0.5, 0.25]])
    lowered(lambda x: torch.ops.aten._safe_softmax(x, 1), x)


@pytest.mark.usefixtures("_decomposed")
def test_without_elements_or_dimensions() -> None:
    lowered(lambda x: (torch.softmax(x, 1), torch.log_softmax(x, 1)), torch.zeros(0, 3))
    lowered(lambda x: (torch.softmax(x, 0), torch.log_softmax(x, 0)), torch.tensor(2.0))


@pytest.mark.usefixtures("whole")
def test_a_softmax_is_four_loops() -> None:
    found = lowered(lambda x: torch.softmax(x, -1), grid(torch.float32, 3, 4))
    assert found.kinds() == ["Reduce", "Map", "Reduce", "Map"]


@pytest.mark.usefixtures("whole")
def test_symbolic_sizes() -> None:
    x = grid(torch.float32, 4, 6).requires_grad_()
    lowered(lambda x: torch.softmax(x, -1), x, dynamic=True, **WIDE)
    lowered(lambda x: functional.layer_norm(x, x.shape[1:]), x, dynamic=True, **WIDE)
    lowered(lambda x: (x.mean(), x.var(0), x.std(1)), x.detach(), dynamic=True, **WIDE)
