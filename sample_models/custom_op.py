"""A custom operator is a barrier to fusion: operations before and after it stay apart.

Look for: one graph, yet two kernels with a call between them; `--show fusion` has no pair across
the call. The operator has a fake implementation; without one it would break the graph too.
"""

import torch
import torch.nn as nn


@torch.library.custom_op("sample::clip_norm", mutates_args=())
def clip_norm(x: torch.Tensor, limit: float) -> torch.Tensor:
    norm = x.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    return x * torch.clamp(limit / norm, max=1.0)


@clip_norm.register_fake
def _(x, limit):
    return torch.empty_like(x)


class Clipped(nn.Module):
    def forward(self, x):
        h = torch.sin(x) * 2.0 + 1.0
        h = clip_norm(h, 3.0)
        return torch.cos(h) * h + x


torch.manual_seed(0)
model = Clipped()
example_inputs = (torch.randn(256, 512),)
