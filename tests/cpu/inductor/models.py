"""Small models that the tests of Inductor's records share."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A transformer block whose attention is written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.after = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).split(width, 2)
        q = q.view(batch, length, self.heads, -1).transpose(1, 2)
        k = k.view(batch, length, self.heads, -1).transpose(1, 2)
        v = v.view(batch, length, self.heads, -1).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * 0.37
        weights = torch.softmax(scores - scores.mean(), -1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.merge(mixed)
        return x + self.narrow(functional.gelu(self.wide(self.after(x))))


class Transformer(nn.Module):
    def __init__(self, layers: int = 4, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


class Softmax(nn.Module):
    """A scaled softmax, which a rewrite pattern of Inductor replaces, then a GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        scaled = y @ y.transpose(-1, -2) * 0.3  # scaled
        weights = torch.softmax(scaled, -1)  # softmax
        return functional.gelu(weights @ y)  # gelu


class Zoo(nn.Module):
    """One of each kind of code that the backends generate."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.convolution = nn.Conv2d(2, 3, 3)

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        looked_up = self.table(i) * 2
        padded = functional.pad(x, (1, 2)).sin()
        turned = (x.t().contiguous() + 1).relu()
        best = x.argmax(1)
        running = x.cumsum(1)
        scattered = torch.zeros(8, 6).scatter_add(0, i.view(1, 6) % 8, x[:1])
        pooled = functional.max_pool2d(self.convolution(x.view(1, 2, 6, 4)), 2)
        half = (x.to(torch.bfloat16).softmax(-1) * 3).float()
        whole = (i // 3) % 2
        chosen = torch.where(x > 0, x, x.amax(1, keepdim=True))
        return (
            looked_up,
            padded,
            turned,
            best,
            running,
            scattered,
            pooled,
            half,
            whole,
            chosen,
            x.std() * 2,
        )


def zoo_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(8, 6), torch.randint(0, 11, (6,))
