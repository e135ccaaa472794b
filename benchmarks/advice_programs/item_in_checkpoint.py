"""A number is read inside a checkpointed block.

gb: Unsupported Tensor.item() call with capture_scalar_outputs=False
cause: break at `peak = h.abs().max().item()`
fix: `    peak = h.abs().max().item()` -> `    peak = h.abs().max().detach()`
train: yes
"""

import torch
from torch.utils.checkpoint import checkpoint

weight = torch.nn.Parameter(torch.randn(6, 6))


def block(x):
    h = (x @ weight).relu()
    peak = h.abs().max().item()
    return h / peak


def model(x):
    x = x + 1
    y = checkpoint(block, x, use_reentrant=False)
    return y @ weight


example_inputs = (torch.randn(3, 6),)
