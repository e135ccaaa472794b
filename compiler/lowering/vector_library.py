"""Elementary functions that MKL computes faster on Intel processors.

ATen calls MKL's vector functions for float32 and float64 (aten/src/ATen/cpu/vml.h), some of which
take half the time of our polynomials on Intel; on AMD all take longer. A call cannot share a
nest with its neighbours, so it is worth it where there are none. Integers stay loops: many are 0,
or outside a function's domain, and an infinity or a NaN takes MKL more than ten times as long.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.loops.sizes import product
from compiler.lowering.builder import Builder
from compiler.lowering.registry import Worth, estimates
from compiler.lowering.tensors import Tensor
from compiler.processor import INTEL, vendor

NANOSECONDS = {
    "tanh": {"float32": (0.55, 1.0)},
    "log2": {"float32": (0.45, 0.9)},
    "erf": {"float64": (1.9, 2.2)},
    "erfc": {"float32": (1.0, 1.2), "float64": (2.8, 5.3)},
    "erfinv": {"float32": (1.7, 2.3), "float64": (2.4, 5.9)},
}
"""(ATen, loops) for each element, measured on a Xeon with AVX-512, torch 2.11; the loops of erf,
and of erfc of float32, on an EPYC with AVX-512. MKL's other functions take as long as our loops, or
longer: 0.6 ns for acos, asin, atan and tan of float32 (loops on the EPYC: 0.2 to 0.5), 1.3 for
acos of float64 (1.0), 2.3 for atan (1.2), 2.8 for tanh (1.9), 1.2 for log10 (1.3)."""
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
