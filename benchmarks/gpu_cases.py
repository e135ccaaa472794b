"""The cases of `gpu_kernels.py`: what models compute between their matrix products.

Bytes are what must move at least: each input read once, each output written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
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


Shape = tuple[int, ...]
Made = Shape | Callable[[], torch.Tensor]
"""An input: random numbers of a shape, or what a function returns."""


def targets(rows: int, classes: int) -> torch.Tensor:
    return torch.randint(0, classes, (rows,), device="cuda")


def of_dtype(dtype: torch.dtype, name: str) -> list[Case]:
    """The cases of one dtype."""
    found: list[Case] = []

    def add(
        what: str,
        function: Callable[..., Any],
        passes: int,
        first: Shape,
        *others: Made,
        form: torch.memory_format = torch.contiguous_format,
        backward: bool = False,
    ) -> None:
        """Bytes are `passes` over the first input."""

        def inputs() -> Tensors:
            image = _random(*first, dtype=dtype).to(memory_format=form)
            more = (
                other() if callable(other) else _random(*other, dtype=dtype) for other in others
            )
            made = (image, *more)
            return tuple(t.requires_grad_(backward and t.is_floating_point()) for t in made)

        moved = passes * dtype.itemsize * prod(first)
        found.append(Case(f"{what} {name}", function, inputs, moved, backward))

    million = 1 << 20
    add("gelu 64M", F.gelu, 2, (64 * million,))
    add("swiglu 8192x11008", lambda a, b: F.silu(a) * b, 3, (8192, 11008), (8192, 11008))
    for m, n in ((32768, 256), (8192, 1024), (8192, 4096), (4096, 12672), (2048, 65536)):
        add(f"softmax {m}x{n}", lambda x: torch.softmax(x, -1), 2, (m, n))
    for m, n in ((32768, 512), (8192, 1024), (8192, 4096), (4096, 15872)):
        add(f"add+layernorm {m}x{n}", add_layer_norm, 3, (m, n), (m, n), (n,), (n,))
        add(f"rmsnorm {m}x{n}", rms_norm, 2, (m, n), (n,))
    for m, n in ((32768, 512), (8192, 1024), (8192, 4096)):
        add(f"layernorm backward {m}x{n}", layer_norm, 3, (m, n), (n,), (n,), backward=True)
        add(f"rmsnorm backward {m}x{n}", rms_norm, 3, (m, n), (n,), backward=True)
    add("residual+rmsnorm 8192x4096", add_rms_norm, 4, (8192, 4096), (8192, 4096), (4096,))
    columns = (65536, 512)
    add("var+mean of columns 65536x512", lambda x: torch.var_mean(x.float(), 0), 1, columns)
    add("column sum 65536x1024", lambda x: x.float().sum(0), 1, (65536, 1024))
    add("row sum 8192x8192", lambda x: x.float().sum(1), 1, (8192, 8192))
    add("full sum 256M", lambda x: x.float().sum(), 1, (256 * million,))
    scores = (8192, 32000)
    wanted = partial(targets, *scores)
    add("cross entropy 8192x32000", F.cross_entropy, 1, scores, wanted)
    add("cross entropy backward 8192x32000", F.cross_entropy, 2, scores, wanted, backward=True)
    add("y + x.t() 8192", lambda x, y: y + x.t(), 3, (8192, 8192), (8192, 8192))
    heads, angles = (8, 32, 2048, 128), (2048, 128)
    add("rope 8x32x2048x128", rope, 4, heads, heads, angles, angles)
    images = (32, 256, 56, 56)
    nhwc = torch.channels_last
    what = "batch norm train+relu 32x256x56x56 nhwc"
    add(what, batch_norm_relu, 3, images, (256,), (256,), form=nhwc)
    add("group norm+silu 16x512x64x64", group_norm_silu, 2, (16, 512, 64, 64), (512,), (512,))
    return found


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
