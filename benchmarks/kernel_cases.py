"""Pointwise and reduction cases, in and out of cache, f32 and bf16, as users write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.models import chain, rotate

Inputs = tuple[Tensor, ...]


@dataclass(frozen=True)
class KernelCase:
    function: Callable[..., Any]
    inputs: Callable[[], Inputs]


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def swiglu(a: Tensor, b: Tensor) -> Tensor:
    return F.silu(a) * b


def norm_relu(x: Tensor, m: Tensor, v: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, m, v, w, b, False))


def norm_train(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, None, None, w, b, True) + r)


def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> Inputs:
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * g * 0.001
    return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v


def add_norm(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> Inputs:
    y = x + r
    return F.layer_norm(y, (y.shape[-1],), w, b), y


def add_transposed(x: Tensor, y: Tensor) -> Tensor:
    return y + x.t()


def norm_backward(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, w: Tensor) -> Any:
    return torch.ops.aten.native_layer_norm_backward(
        g, x, [x.shape[-1]], mean, rstd, w, w, [True, True, True]
    )


def _randn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape).to(dtype)


def _images(*shape: int) -> Tensor:
    return _randn(*shape).to(memory_format=torch.channels_last)


def _per_channel(count: int) -> Inputs:
    return (_randn(count), _randn(count).abs(), _randn(count), _randn(count))


B16 = torch.bfloat16
R = _randn

KERNELS = {
    "chain 256K": KernelCase(chain, lambda: (R(1 << 18),)),
    "chain 4M": KernelCase(chain, lambda: (R(1 << 22),)),
    "chain 256K bf16": KernelCase(chain, lambda: (R(1 << 18, dtype=B16),)),
    "swiglu 64x1376": KernelCase(swiglu, lambda: (R(64, 1376), R(64, 1376))),
    "swiglu 2048x5504": KernelCase(swiglu, lambda: (R(2048, 5504), R(2048, 5504))),
    "swiglu 512x1376 bf16": KernelCase(
        swiglu, lambda: (R(512, 1376, dtype=B16), R(512, 1376, dtype=B16))
    ),
    "mish 1M": KernelCase(lambda x: x * torch.tanh(F.softplus(x)), lambda: (R(1 << 20),)),
    "adam 1M": KernelCase(adam, lambda: tuple(R(1 << 20).abs() for _ in range(4))),
    "rms norm 3000x768": KernelCase(rms_norm, lambda: (R(3000, 768), R(768))),
    "rms norm 3000x768 bf16": KernelCase(
        rms_norm, lambda: (R(3000, 768, dtype=B16), R(768, dtype=B16))
    ),
    "softmax 256x1024": KernelCase(lambda x: torch.softmax(x, -1), lambda: (R(256, 1024),)),
    "softmax 4096x1024": KernelCase(lambda x: torch.softmax(x, -1), lambda: (R(4096, 1024),)),
    "softmax 4096x333 bf16": KernelCase(
        lambda x: torch.softmax(x, -1), lambda: (R(4096, 333, dtype=B16),)
    ),
    "layer norm 256x1024": KernelCase(
        lambda x, w, b: F.layer_norm(x, (1024,), w, b), lambda: (R(256, 1024), R(1024), R(1024))
    ),
    "add + layer norm 2048x1024": KernelCase(
        add_norm, lambda: (R(2048, 1024), R(2048, 1024), R(1024), R(1024))
    ),
    "layer norm backward 2048x1024": KernelCase(
        norm_backward,
        lambda: (R(2048, 1024), R(2048, 1024), R(2048, 1), torch.rand(2048, 1) + 0.5, R(1024)),
    ),
    "cross entropy 512x30522": KernelCase(
        F.cross_entropy, lambda: (R(512, 30522), torch.randint(0, 30522, (512,)))
    ),
    "column sum 4096x1000": KernelCase(lambda x: (x * 2 + 1).sum(0), lambda: (R(4096, 1000),)),
    "column sum 4096x1000 bf16": KernelCase(
        lambda x: (x * 2 + 1).sum(0), lambda: (R(4096, 1000, dtype=B16),)
    ),
    "row sum 4096x1000": KernelCase(lambda x: (x * x).sum(1), lambda: (R(4096, 1000),)),
    "mean squared error 4M": KernelCase(
        lambda x, y: ((x - y) ** 2).mean(), lambda: (R(1 << 22), R(1 << 22))
    ),
    "full max 1M": KernelCase(lambda x: (x * 2).amax(), lambda: (R(1 << 20),)),
    "log softmax of transposed 1000x512": KernelCase(
        lambda x: F.log_softmax(x.transpose(0, 1), -1).exp().sum(-1), lambda: (R(1000, 512),)
    ),
    "argmax 4096x1000": KernelCase(lambda x: x.argmax(-1), lambda: (R(4096, 1000),)),
    "cumsum 4096x1000": KernelCase(lambda x: x.cumsum(-1), lambda: (R(4096, 1000),)),
    "rope 4x16x512x64": KernelCase(rotate, lambda: (R(4, 16, 512, 64), R(512, 64), R(512, 64))),
    "y + x.t() 1024": KernelCase(add_transposed, lambda: (R(1024, 1024), R(1024, 1024))),
    "y + x.t() 1024x1040": KernelCase(add_transposed, lambda: (R(1040, 1024), R(1024, 1040))),
    "y + x.t() 2048x512": KernelCase(add_transposed, lambda: (R(512, 2048), R(2048, 512))),
    "y + x.t() 4096": KernelCase(add_transposed, lambda: (R(4096, 4096), R(4096, 4096))),
    "y + x.t() 1000 bf16": KernelCase(
        add_transposed, lambda: (R(1000, 1000, dtype=B16), R(1000, 1000, dtype=B16))
    ),
    "softmax of transposed 512x1000": KernelCase(
        lambda x: torch.softmax(x.t(), -1), lambda: (R(1000, 512),)
    ),
    "channels-last to contiguous": KernelCase(
        lambda x: (x * 2).contiguous(), lambda: (_images(8, 64, 56, 56),)
    ),
    "add + layer norm 32x64": KernelCase(add_norm, lambda: (R(32, 64), R(32, 64), R(64), R(64))),
    "batch norm + relu, channels-last": KernelCase(
        norm_relu, lambda: (_images(8, 64, 56, 56), *_per_channel(64))
    ),
    "batch norm train + add + relu": KernelCase(
        norm_train, lambda: (R(4, 256, 28, 28), R(4, 256, 28, 28), R(256), R(256))
    ),
}
"""Name -> case, in the order of the table."""
