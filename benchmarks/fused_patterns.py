"""Patterns of several operations, as models have them, that compilers fuse or should leave alone.

Each takes the number of elements of its largest tensor and a dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Made = tuple[Callable[..., Any], list[Tensor]]
Pattern = Callable[[int, torch.dtype], Made]


def randn(*shape: int, dtype: torch.dtype) -> Tensor:
    return (torch.randn(*shape) * (1 if dtype.is_floating_point else 20)).to(dtype)


def rows(function: Callable[..., Any], width: int, tensors: int = 1, vectors: int = 0) -> Pattern:
    """Matrices of this width, and vectors of it."""

    def make(elements: int, dtype: torch.dtype) -> Made:
        height = max(1, elements // width)
        shapes = [(height, width)] * tensors + [(width,)] * vectors
        return function, [randn(*shape, dtype=dtype) for shape in shapes]

    return make


def images(function: Callable[..., Any], channels: int = 32, tensors: int = 1) -> Pattern:
    """Square images, two in a batch."""

    def make(elements: int, dtype: torch.dtype) -> Made:
        side = max(8, isqrt(elements // (2 * channels)))
        shape = (2, channels, side, side)
        return function, [randn(*shape, dtype=dtype) for _ in range(tensors)]

    return make


def matrices(function: Callable[..., Any], shapes: Callable[[int], Sequence[Any]]) -> Pattern:
    """Tensors whose shapes follow from the number of elements."""

    def make(elements: int, dtype: torch.dtype) -> Made:
        return function, [randn(*shape, dtype=dtype) for shape in shapes(elements)]

    return make


def rope_interleaved(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * c - odd * s, odd * c + even * s), -1).flatten(-2)


def rope_complex(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    pairs = x.unflatten(-1, (-1, 2))
    turned = torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)
    return x * c.repeat_interleave(2, -1) + turned * s.repeat_interleave(2, -1)


def cat_of_eight(x: Tensor) -> Tensor:
    return torch.cat([x * k for k in range(8)], -1)


def scatter_sum(x: Tensor) -> Tensor:
    index = (x.abs() * 7).long() % x.shape[0]
    return torch.zeros_like(x).scatter_add(0, index, x)


def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m = m.lerp(g, 0.1)
    v = v * 0.999 + g * g * 0.001
    return p - 1e-3 * m / (v.abs().sqrt() + 1e-8), m, v


def _square(elements: int) -> list[Any]:
    side = isqrt(elements)
    return [(side, side), (side,)]


PATTERNS: dict[str, Pattern] = {
    "bias gelu": rows(lambda x, b: F.gelu(x + b), 256, vectors=1),
    "swiglu": rows(lambda a, b: F.silu(a) * b, 256, 2),
    "add layer norm": rows(
        lambda x, r, w, b: F.layer_norm(x + r, (x.shape[-1],), w, b), 256, 2, vectors=2
    ),
    "rms norm": rows(
        lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w, 256, vectors=1
    ),
    "masked softmax": rows(
        lambda x, m: torch.softmax(x.masked_fill(m > 1, float("-inf")), -1), 256, 2
    ),
    "adam": rows(adam, 256, 4),
    "rope interleaved": matrices(rope_interleaved, lambda n: [(n // 64, 64), *[(n // 64, 32)] * 2]),
    "rope by pairs": matrices(rope_complex, lambda n: [(n // 64, 64), *[(n // 64, 32)] * 2]),
    "cat of eight": rows(cat_of_eight, 32),
    "pad add": images(lambda x: F.pad(x, (1, 1, 1, 1)) + 1),
    "reflection pad": images(lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect") * 2),
    "unfold": images(lambda x: F.unfold(x, 3, padding=1)),
    "windows": rows(lambda x: x.unfold(-1, 4, 2).sum(-1), 256),
    "average pool 2": images(lambda x: F.avg_pool2d(x, 2)),
    "average pool 3": images(lambda x: F.avg_pool2d(x, 3, 2, 1)),
    "average pool 3 by 1": images(lambda x: F.avg_pool2d(x, 3, 1, 1)),
    "max pool 2": images(lambda x: F.max_pool2d(x, 2)),
    "max pool 3": images(lambda x: F.max_pool2d(x, 3, 2, 1)),
    "relu max pool 3": images(lambda x: F.max_pool2d(F.relu(x), 3, 2, 1)),
    "nearest twice": images(lambda x: F.interpolate(x, scale_factor=2)),
    "bilinear twice": images(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    ),
    "upsample add": images(
        lambda x, y: F.interpolate(x, scale_factor=2)[..., : y.shape[-1]], 16, 2
    ),
    "local response norm": images(lambda x: F.local_response_norm(x, 5)),
    "group norm silu": images(lambda x: F.silu(F.group_norm(x, 8))),
    "dot by row": matrices(
        lambda x, y: torch.bmm(x[:, None], y[:, :, None]), lambda n: [(n // 64, 64)] * 2
    ),
    "matrix vector": matrices(lambda a, x: a @ x, _square),
    "vector matrix": matrices(lambda a, x: x @ a, _square),
    "small batched product": matrices(torch.bmm, lambda n: [(n // 64, 8, 8)] * 2),
    "floor division": rows(lambda x, y: torch.div(x, y.abs() + 1, rounding_mode="floor"), 256, 2),
    "truncated division": rows(
        lambda x, y: torch.div(x, y.abs() + 1, rounding_mode="trunc"), 256, 2
    ),
    "row sum": rows(lambda x: x.sum(-1), 256),
    "row maximum": rows(lambda x: x.amax(-1), 256),
    "any of a row": rows(lambda x: (x > 2).any(-1), 256),
    "argmax": rows(lambda x: x.argmax(-1), 256),
    "cumulative sum": rows(lambda x: x.cumsum(-1), 256),
    "scatter sum": rows(scatter_sum, 256),
    "roll": rows(lambda x: x.roll(3, -1) + x, 256),
    "flip": rows(lambda x: x.flip(-1) * 2, 256),
    "transposed add": matrices(lambda x, y: x.t() + y, lambda n: [(isqrt(n), isqrt(n))] * 2),
    "to bfloat16": rows(lambda x: x.to(torch.bfloat16), 256),
    "to float32": rows(lambda x: x.to(torch.float32) * 2, 256),
}
"""Name -> pattern."""
