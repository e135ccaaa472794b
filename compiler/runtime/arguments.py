"""Which values a compiled function can be called with. It reads memory, and nothing else of them.

A tensor's memory is not its values where it has a conjugate or a negative bit: such a view is
lazy. Guards of TorchDynamo hold these bits (they are dispatch keys), so what is true of the fake
tensors at compile time is true at each call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, FakeTensor)


def refusal(value: Any) -> str:
    """Why a compiled function cannot take this value; "" where it can."""
    if not isinstance(value, torch.Tensor):
        known = isinstance(value, (int, torch.SymInt)) or value is None
        return "" if known else f"an argument of type {type(value).__name__}"
    if type(value) not in _PLAIN:
        return f"a tensor of the subclass {type(value).__name__}"
    if value.layout is not torch.strided:
        return f"a tensor of layout {value.layout}"
    if value.device.type != "cpu":
        return f"a tensor on {value.device.type}"
    if value.is_conj():
        return "a lazily conjugated tensor"
    if value.is_neg():
        return "a lazily negated tensor"
    if value.is_quantized:
        return "a quantized tensor"
    return ""


def first_refusal(values: Iterable[Any]) -> str:
    """The first reason among several values; "" where all can be taken."""
    return next((reason for reason in map(refusal, values) if reason), "")
