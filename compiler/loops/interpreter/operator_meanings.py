"""The meaning of each scalar operator, reduction and scan, in terms of torch's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tcw.compiler.loops.dtypes import compute_dtype

Value = Any
"""A torch.Tensor (mypy sees torch as untyped)."""


def torch_dtype(dtype: str) -> Any:
    return getattr(torch, dtype)


def register_dtype(dtype: str) -> Any:
    """The torch dtype in which a value of `dtype` is computed."""
    return torch_dtype(compute_dtype(dtype))


def rounded(value: Value, dtype: str) -> Value:
    """The value after a round trip through `dtype`, in that dtype's register."""
    return value.to(torch_dtype(dtype)).to(register_dtype(dtype))


def _fma(a: Value, b: Value, c: Value) -> Value:
    """a*b+c. For float32 the product is exact; the sum is rounded to float64, then to float32."""
    return (a.double() * b.double() + c.double()).to(a.dtype)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "fma": _fma,
    "div": torch.true_divide,
    "trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
}
"""Operators whose name differs from torch's. All others are in `torch`."""


def apply(name: str, args: list[Value], dtype: str) -> Value:
    """Apply an operator to tensors that broadcast. The result is in `dtype`'s register.

    Raises TypeError if torch returns another dtype, since operators do not promote.
    """
    if name in ("convert", "rounded"):
        return rounded(args[0], dtype)
    function = FUNCTIONS.get(name) or getattr(torch, name)
    result = function(*args)
    if result.dtype != register_dtype(dtype):
        raise TypeError(f"{name} of {[a.dtype for a in args]} is {result.dtype}, not {dtype}")
    return result


def reduce(op: str, rows: Value, dtype: str) -> Value:
    """Reduce `rows` from (kept, reduced) to (kept,), accumulating in the dtype of `rows`."""
    if op in ("sum", "prod"):
        result = getattr(torch, op)(rows, dim=1, dtype=rows.dtype)
    elif op == "exp_sum":
        result = (rows - rows.amax(1, keepdim=True)).exp().sum(1)
    elif op == "deviations":
        result = (rows - rows.mean(1, keepdim=True)).square().sum(1)
    elif op in ("max", "min"):
        result = getattr(torch, f"a{op}")(rows, dim=1)
    elif op in ("any", "all"):
        result = getattr(torch, op)(rows != 0, dim=1)
    else:
        numbers = rows.to(torch.uint8) if rows.dtype == torch.bool else rows
        result = getattr(torch, op)(numbers, dim=1)
    return rounded(result, dtype)


def scan(op: str, values: Value, dim: int, reverse: bool, dtype: str) -> Value:
    """An inclusive scan along one dimension, accumulating in the dtype of `values`."""
    if reverse:
        values = values.flip(dim)
    if op in ("sum", "prod"):
        result = getattr(torch, f"cum{op}")(values, dim=dim, dtype=values.dtype)
    else:
        result = getattr(torch, f"cum{op}")(values, dim=dim).values
    if reverse:
        result = result.flip(dim)
    return rounded(result, dtype)
