"""The models that the engines are compared on: plain PyTorch, random weights, no dependency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mlp(nn.Module):
    def __init__(self, width: int = 512, layers: int = 3) -> None:
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(layers)])

    def forward(self, x: Tensor) -> Tensor:
        for linear, norm in zip(self.linears, self.norms, strict=True):
            x = norm(F.gelu(linear(x)))
        return x


class GptBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        heads = [
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, 2)
        ]
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(
        self, width: int = 256, heads: int = 4, layers: int = 4, words: int = 1000, time: int = 128
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(time, width)
        self.blocks = nn.ModuleList([GptBlock(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class BasicBlock(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or inner != outer:
            self.short = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks, inner = [], 64
        for outer, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [BasicBlock(inner, outer, stride), BasicBlock(outer, outer, 1)]
            inner = outer
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.pool(F.relu(self.norm(self.conv(x)))))
        return self.head(x.mean((2, 3)))


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


class LlamaBlock(nn.Module):
    def __init__(
        self, width: int = 512, heads: int = 8, inner: int = 1376, time: int = 128
    ) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        size = width // heads
        rates = 1 / 10000 ** (torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(time).float(), rates)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        n = self.norm1(x)
        q, k, v = (
            p(n).view(batch, time, self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v)
        )
        q, k = rotate(q, self.cosine, self.sine), rotate(k, self.cosine, self.sine)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, time, width))
        n = self.norm2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class SoftmaxNorm(nn.Module):
    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(torch.softmax(x, -1))


def add_multiply(x: Tensor, y: Tensor) -> Tensor:
    return (x + y) * 2.0


def chain(x: Tensor) -> Tensor:
    y = x * torch.sigmoid(x) + torch.tanh(x)
    return F.gelu(y) * 0.5 + torch.exp(-y * y)


@dataclass(frozen=True)
class Case:
    """A model and its inputs."""

    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    train: bool = False


def _eval(make: Callable[[], nn.Module], *inputs: Callable[[], Tensor]) -> Case:
    return Case(lambda: (make().eval(), tuple(i() for i in inputs)))


def _tokens() -> Tensor:
    return torch.randint(0, 1000, (4, 128))


MODELS = {
    "add-mul, 8 elements": Case(lambda: (add_multiply, (torch.randn(8), torch.randn(8)))),
    "mlp, 3 layers": _eval(Mlp, lambda: torch.randn(256, 512)),
    "gpt, 4 layers": _eval(Gpt, _tokens),
    "gpt, forward + backward": Case(lambda: (Gpt().train(), (_tokens(),)), train=True),
    "resnet-18 eval": _eval(ResNet18, lambda: torch.randn(4, 3, 224, 224)),
    "llama block": _eval(LlamaBlock, lambda: torch.randn(4, 128, 512)),
    "pointwise chain, 16M": Case(lambda: (chain, (torch.randn(16 << 20),))),
    "softmax + norm, 4096 x 1024": _eval(SoftmaxNorm, lambda: torch.randn(4096, 1024)),
}
"""Name -> case, in the order of the tables."""


def run_once(function: Callable[..., Any], inputs: tuple[Any, ...], train: bool) -> Any:
    """One call; in training also the backward of a mean of squares."""
    if not train:
        with torch.no_grad():
            return function(*inputs)
    output = function(*inputs)
    output.square().mean().backward()
    return output
