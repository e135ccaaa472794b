"""Masked elements, and what is nothing beside 1, raise no underflow.

An underflow takes an Intel core as long as 100 instructions.
"""

from __future__ import annotations

import ctypes
import math
import platform
from collections.abc import Callable

import pytest
import torch

from tcw.compiler.engine.backend import backend

UNDERFLOW = 16
"""FE_UNDERFLOW of <fenv.h> on x86."""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86's flags")

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softmax": lambda x: x.softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
}


def check(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    """The result is eager's, and nothing underflows on the way."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, dynamic=False)
    torch.testing.assert_close(compiled(x), function(x))
    libm = ctypes.CDLL("libm.so.6")
    libm.feclearexcept(UNDERFLOW)
    compiled(x)
    assert not libm.fetestexcept(UNDERFLOW)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_far_below_zero(name: str, dtype: torch.dtype) -> None:
    function = FUNCTIONS[name]
    least = -6e4 if dtype == torch.float16 else -1e9
    torch.manual_seed(0)  # a number beside 0 underflows where 16 bits are the result
    x = torch.randn(4, 80).to(dtype)
    x[:, ::3] = -math.inf
    x[:, 1::5] = least
    x[:, 2::7] = -1000
    check(function, x)


BESIDE_ONE: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], tuple[float, ...]]] = {
    "softplus": (torch.nn.functional.softplus, (-30, -40, -80)),
    "logsigmoid": (torch.nn.functional.logsigmoid, (30, 60, 80, -80)),
    "log1p of exp": (lambda x: x.exp().log1p(), (-30, -50, -86)),
    "tanh": (torch.tanh, (40, 45, 50, -45)),
    "tanhshrink": (torch.nn.functional.tanhshrink, (44, -50)),
    "sigmoid": (torch.sigmoid, (88, 95, 103)),
    "erfc": (lambda x: -torch.erfc(x), (-9, -9.5, -10, -30, 11, 30)),
}
"""A function, and numbers of which it needs something tiny beside 1."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", BESIDE_ONE)
def test_beside_one(name: str, dtype: torch.dtype) -> None:
    function, numbers = BESIDE_ONE[name]
    x = torch.tensor(numbers, dtype=dtype).repeat(64)
    check(function, x)
