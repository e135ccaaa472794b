"""A work buffer is resized.

gb: Unsupported Tensor.resize_() call
cause: break at `work.resize_(x.shape)`
fix: `    work = torch.empty(0)` -> `    work = torch.empty(x.shape)`
fix: `    work.resize_(x.shape)` -> ``
"""

import torch


def model(x):
    x = x * 2
    work = torch.empty(0)
    work.resize_(x.shape)
    work.copy_(x)
    return work.sum() + x


example_inputs = (torch.randn(6),)
