"""Small models for tests; a comment `# @name` marks a line that a test asks for by name."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def line(name: str) -> int:
    """Number of the line marked `# @name` in this file."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# @{name}"))


class Mlp(nn.Module):
    """Two linears, gelu, layer norm, a scaled softmax: has a pattern that Inductor replaces."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x)  # @up
        h = F.gelu(h)  # @gelu
        h = self.down(h) + x  # @down
        h = self.norm(h)  # @norm
        return torch.softmax(h * 0.5, dim=-1)  # @softmax


class Broken(nn.Module):
    """Two graphs, so that a gradient runs through both."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.first(x))  # @first
        torch._dynamo.graph_break()
        return torch.sigmoid(self.second(h)).sum()  # @second


class Checkpointed(nn.Module):
    """A region that the user wants recomputed."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def region(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.inner(x)).exp()  # @region

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = checkpoint(self.region, x, use_reentrant=False)
        return self.outer(h).sum()
