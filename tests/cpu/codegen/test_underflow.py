"""Masked elements raise no underflow, which takes an Intel core as long as 100 instructions."""

from __future__ import annotations

import ctypes
import math
import platform
from collections.abc import Callable

import pytest
import torch

from compiler.engine.backend import backend

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
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, dynamic=False)
    torch.testing.assert_close(compiled(x), function(x))
    libm = ctypes.CDLL("libm.so.6")
    libm.feclearexcept(UNDERFLOW)
    compiled(x)
    assert not libm.fetestexcept(UNDERFLOW)
