"""Inputs of a cut-out kernel as Python text: drawn at random, or the exact values."""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass
from typing import Any

import torch

INLINE = 24
"""The maximum number of elements written out as numbers."""
STORED_BYTES = 4 << 20
"""The maximum for all values of a file together."""

DRAWN = '''
_generator = torch.Generator().manual_seed(0)


def drawn(shape, strides, dtype, low, high, mean=0.0, spread=1.0):
    """Numbers in the range of the real ones, always the same."""
    if dtype is torch.bool:
        values = torch.rand(shape, generator=_generator, dtype=torch.float64) < mean
    elif dtype.is_floating_point:
        values = torch.randn(shape, generator=_generator, dtype=torch.float64) * spread + mean
        values = values.clamp(low, high)
    else:
        values = torch.randint(low, high + 1, shape, generator=_generator)
    made = torch.empty_strided(shape, strides, dtype=dtype)
    return made.copy_(values)
'''

STORED = '''
def stored(shape, strides, dtype, data):
    """The exact values, packed."""
    values = torch.frombuffer(bytearray(zlib.decompress(base64.b85decode(data))), dtype=dtype)
    made = torch.empty_strided(shape, strides, dtype=dtype)
    return made.copy_(values.reshape(shape))
'''


@dataclass(frozen=True)
class InputText:
    """One argument."""

    expression: str
    value: Any
    """The value of the expression."""


class Drawing:
    """Draws as the generated file does, one input after the other."""

    def __init__(self) -> None:
        names: dict[str, Any] = {"torch": torch}
        exec(DRAWN, names)
        self._drawn = names["drawn"]

    def of(self, real: torch.Tensor) -> InputText:
        """An input similar to this one. Integers, which may index a tensor, keep their range, and
        constant tensors stay constant."""
        shape, strides = tuple(real.shape), dense_strides(real)
        about = [f"{shape}, {strides}, {real.dtype}"]
        if real.numel() == 0 or real.is_complex():
            return stored(real)
        if real.dtype is torch.bool:
            about.append(f"0, 1, {float(real.double().mean()):.6g}")
        elif real.dtype.is_floating_point:
            finite = real.double()[torch.isfinite(real)]
            if not finite.numel():
                return stored(real)
            low, high = float(finite.min()), float(finite.max())
            spread = float(finite.std(correction=0))
            about.append(f"{low!r}, {high!r}, {float(finite.mean()):.6g}, {spread:.6g}")
        else:
            about.append(f"{int(real.min())}, {int(real.max())}")
        expression = f"drawn({', '.join(about)})"
        value = eval(expression, {"torch": torch, "drawn": self._drawn})
        return InputText(_on(expression, real), value.to(real.device))


def stored(real: torch.Tensor) -> InputText:
    """The exact values."""
    shape, strides = tuple(real.shape), dense_strides(real)
    value = torch.empty_strided(shape, strides, dtype=real.dtype, device=real.device).copy_(real)
    flat = real.detach().cpu().contiguous().reshape(-1)
    if real.numel() <= INLINE and not real.is_complex():
        numbers = ", ".join(number(one) for one in flat.tolist())
        text = f"torch.tensor([{numbers}], dtype={real.dtype})"
        if strides != _row_major(shape):
            made = f"torch.empty_strided({shape}, {strides}, dtype={real.dtype})"
            text = f"{made}.copy_({text}.reshape({shape}))"
        elif shape != (real.numel(),):
            text += f".reshape({shape})"
        return InputText(_on(text, real), value)
    data = base64.b85encode(zlib.compress(flat.view(torch.uint8).numpy().tobytes(), 9)).decode()
    text = f'stored({shape}, {strides}, {real.dtype}, "{data}")'
    return InputText(_on(text, real), value)


def dense_strides(real: torch.Tensor) -> tuple[int, ...]:
    """The tensor's strides; row-major ones if its elements share memory."""
    strides = tuple(real.stride())
    shared = any(stride == 0 and size > 1 for stride, size in zip(strides, real.shape, strict=True))
    return _row_major(tuple(real.shape)) if shared else strides


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(torch.empty(shape, device="meta").stride())


def _on(text: str, real: torch.Tensor) -> str:
    return text if real.device.type == "cpu" else f'{text}.to("{real.device}")'


def number(value: Any) -> str:
    """A number as Python text."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
