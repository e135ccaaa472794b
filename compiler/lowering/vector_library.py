"""Elementary functions that MKL computes faster on Intel processors.

ATen calls MKL's vector functions for float32 and float64 (aten/src/ATen/cpu/vml.h), some of which
take half the time of our polynomials on Intel; on AMD all take longer. A call cannot share a
nest with its neighbours, so it is worth it where there are none. Integers stay loops: many are 0,
or outside a function's domain, and an infinity or a NaN takes MKL more than ten times as long.
"""

from __future__ import annotations

from typing import Any

import torch

from tcw.compiler.loops.sizes import product
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.registry import Worth, estimates
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.processor import INTEL, vendor

NANOSECONDS = {
    "erf": {"float64": (1.26, 2.22)},
    "erfc": {"float32": (0.63, 1.16), "float64": (2.09, 5.47)},
    "erfinv": {"float32": (1.03, 1.53), "float64": (1.80, 4.70)},
    "exp": {"float64": (0.50, 0.83)},
    "log": {"float32": (0.42, 0.48)},
    "log10": {"float32": (0.38, 0.47), "float64": (0.89, 1.27)},
    "log2": {"float32": (0.36, 0.41), "float64": (0.88, 1.19)},
    "sqrt": {"float64": (0.40, 1.09)},
    "tan": {"float32": (0.55, 0.71), "float64": (1.21, 2.17)},
    "tanh": {"float32": (0.37, 0.60)},
}
"""(ATen, loops) for each element, of 65,536 in one thread of a Xeon with AVX-512, torch 2.11. MKL's
other functions take as long as our loops, or longer: 0.26 and 0.29 ns for exp of float32, 0.54 and
0.39 for acos, 1.53 and 0.44 for sinh, 1.66 and 1.80 for tanh of float64, 1.01 and 0.81 for sin."""
CALL = 4000.0
"""Nanoseconds that a call takes beyond a loop nest: the wrapper's Python, and ATen's dispatch."""


def _estimate(name: str) -> None:
    @estimates(name)
    def worth(builder: Builder, x: Tensor, *rest: Any, **keywords: Any) -> Worth | None:
        size = product(builder.meta.shape)
        numbers = NANOSECONDS[name].get(x.dtype)
        if not (builder.alone and numbers and isinstance(size, int) and size and _has_mkl()):
            return None
        aten, loops = numbers
        why = f"{name} of {size:,} elements, by itself, in MKL's vector functions"
        return Worth(loops, aten + CALL / size, why)


for _name in NANOSECONDS:
    _estimate(_name)


def _has_mkl() -> bool:
    return vendor() == INTEL and torch.backends.mkl.is_available()
