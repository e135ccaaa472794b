"""The cases of `gpu_kernels.py`: what models compute between their matrix products.

Bytes are what must move at least: each input read once, each output written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    """One function, with its inputs on the GPU."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[], Tensors]
    bytes: int
    backward: bool = False
    """What is timed is the gradient."""


def _random(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def add_layer_norm(
    x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    return F.layer_norm(x + y, (x.shape[-1],), w, b)


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), w)


def rotated(t: torch.Tensor) -> torch.Tensor:
    half = t.shape[-1] // 2
    return torch.cat((-t[..., half:], t[..., :half]), -1)


def rope(q: torch.Tensor, k: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> Tensors:
    return q * c + rotated(q) * s, k * c + rotated(k) * s


def add_rms_norm(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Tensors:
    """A residual stream and its norm, as transformers have them."""
    stream = x + y
    return stream, rms_norm(stream, w)


def batch_norm_relu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.relu(F.batch_norm(x, None, None, w, b, training=True))


def group_norm_silu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.silu(F.group_norm(x, 32, w, b))


def adam(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> Tensors:
    m = m.lerp(g, 0.1)
    v = v * 0.999 + g * g * 0.001
    return m, v, p - 1e-3 * m / (v.sqrt() + 1e-8)


def embedded(
    i: torch.Tensor, t: torch.Tensor, p: torch.Tensor, w: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    return F.layer_norm(F.embedding(i, t) + p, (1024,), w, b)


def of_dtype(dtype: torch.dtype, name: str) -> list[Case]:
    """The cases of one dtype."""
    size = dtype.itemsize

    def r(*shape: int) -> torch.Tensor:
        return _random(*shape, dtype=dtype)

    def g(*shape: int) -> torch.Tensor:
        return r(*shape).requires_grad_()

    def targets(rows: int, classes: int) -> torch.Tensor:
        return torch.randint(0, classes, (rows,), device="cuda")

    million = 1 << 20
    found = [
        Case(f"gelu 64M {name}", F.gelu, lambda: (r(64 * million),), 2 * size * 64 * million),
        Case(
            f"swiglu 8192x11008 {name}",
            lambda a, b: F.silu(a) * b,
            lambda: (r(8192, 11008), r(8192, 11008)),
            3 * size * 8192 * 11008,
        ),
    ]
    for m, n in ((32768, 256), (8192, 1024), (8192, 4096), (4096, 12672), (2048, 65536)):
        found.append(
            Case(
                f"softmax {m}x{n} {name}",
                lambda x: torch.softmax(x, -1),
                lambda m=m, n=n: (r(m, n),),  # type: ignore[misc]
                2 * size * m * n,
            )
        )
    for m, n in ((32768, 512), (8192, 1024), (8192, 4096), (4096, 15872)):
        found.append(
            Case(
                f"add+layernorm {m}x{n} {name}",
                add_layer_norm,
                lambda m=m, n=n: (r(m, n), r(m, n), r(n), r(n)),  # type: ignore[misc]
                3 * size * m * n,
            )
        )
        found.append(
            Case(
                f"rmsnorm {m}x{n} {name}",
                rms_norm,
                lambda m=m, n=n: (r(m, n), r(n)),  # type: ignore[misc]
                2 * size * m * n,
            )
        )
    for m, n in ((32768, 512), (8192, 1024), (8192, 4096)):
        found.append(
            Case(
                f"layernorm backward {m}x{n} {name}",
                layer_norm,
                lambda m=m, n=n: (g(m, n), g(n), g(n)),  # type: ignore[misc]
                3 * size * m * n,
                True,
            )
        )
        found.append(
            Case(
                f"rmsnorm backward {m}x{n} {name}",
                rms_norm,
                lambda m=m, n=n: (g(m, n), g(n)),  # type: ignore[misc]
                3 * size * m * n,
                True,
            )
        )
    half = 8 * 32 * 2048 * 128
    images = 32 * 256 * 56 * 56
    return [
        *found,
        Case(
            f"residual+rmsnorm 8192x4096 {name}",
            add_rms_norm,
            lambda: (r(8192, 4096), r(8192, 4096), r(4096)),
            4 * size * 8192 * 4096,
        ),
        Case(
            f"var+mean of columns 65536x512 {name}",
            lambda x: torch.var_mean(x.float(), 0),
            lambda: (r(65536, 512),),
            size * 65536 * 512,
        ),
        Case(
            f"column sum 65536x1024 {name}",
            lambda x: x.float().sum(0),
            lambda: (r(65536, 1024),),
            size * 65536 * 1024,
        ),
        Case(
            f"row sum 8192x8192 {name}",
            lambda x: x.float().sum(1),
            lambda: (r(8192, 8192),),
            size * 8192 * 8192,
        ),
        Case(
            f"full sum 256M {name}",
            lambda x: x.float().sum(),
            lambda: (r(256 * million),),
            size * 256 * million,
        ),
        Case(
            f"cross entropy 8192x32000 {name}",
            F.cross_entropy,
            lambda: (r(8192, 32000), targets(8192, 32000)),
            size * 8192 * 32000,
        ),
        Case(
            f"cross entropy backward 8192x32000 {name}",
            F.cross_entropy,
            lambda: (g(8192, 32000), targets(8192, 32000)),
            2 * size * 8192 * 32000,
            True,
        ),
        Case(
            f"y + x.t() 8192 {name}",
            lambda x, y: y + x.t(),
            lambda: (r(8192, 8192), r(8192, 8192)),
            3 * size * 8192 * 8192,
        ),
        Case(
            f"rope 8x32x2048x128 {name}",
            rope,
            lambda: (r(8, 32, 2048, 128), r(8, 32, 2048, 128), r(2048, 128), r(2048, 128)),
            4 * size * half,
        ),
        Case(
            f"batch norm train+relu 32x256x56x56 nhwc {name}",
            batch_norm_relu,
            lambda: (r(32, 256, 56, 56).to(memory_format=torch.channels_last), r(256), r(256)),
            3 * size * images,
        ),
        Case(
            f"group norm+silu 16x512x64x64 {name}",
            group_norm_silu,
            lambda: (r(16, 512, 64, 64), r(512), r(512)),
            2 * size * 16 * 512 * 64 * 64,
        ),
    ]


def cases() -> list[Case]:
    """All cases."""
    single, half = torch.float32, torch.bfloat16
    million = 1 << 20
    widths = [1024 + 64 * i for i in range(8)]
    return [
        *of_dtype(half, "bf16"),
        *of_dtype(single, "f32"),
        Case(
            "adam 64M f32",
            adam,
            lambda: tuple(_random(64 * million, dtype=single).abs() for _ in range(4)),
            7 * 4 * 64 * million,
        ),
        Case(
            "cumsum 8192x8192 f32",
            lambda x: x.cumsum(-1),
            lambda: (_random(8192, 8192, dtype=single),),
            8 * 8192 * 8192,
        ),
        Case(
            "8 small gelus bf16",
            lambda *x: [F.gelu(t) for t in x],
            lambda: tuple(_random(512, width, dtype=half) for width in widths),
            4 * sum(512 * width for width in widths),
        ),
        Case(
            "8 small rmsnorms bf16",
            lambda *x: [F.rms_norm(t, (t.shape[-1],)) for t in x],
            lambda: tuple(_random(512, width, dtype=half) for width in widths),
            4 * sum(512 * width for width in widths),
        ),
        Case(
            "embedding+pos+layernorm 16x512x1024 bf16",
            embedded,
            lambda: (
                torch.randint(0, 50000, (16, 512), device="cuda"),
                _random(50000, 1024, dtype=half),
                _random(512, 1024, dtype=half),
                _random(1024, dtype=half),
                _random(1024, dtype=half),
            ),
            2 * 2 * 16 * 512 * 1024,
        ),
    ]
