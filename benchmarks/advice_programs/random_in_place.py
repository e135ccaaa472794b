"""Noise is drawn into a tensor.

gb: Tensor.random_ op
cause: break at `noise.random_(0, 10)`
fix: `    noise = torch.zeros_like(x)` -> `    noise = torch.randint_like(x, 0, 10)`
fix: `    noise.random_(0, 10)` -> ``
"""

import torch


def model(x):
    x = x * 2
    noise = torch.zeros_like(x)
    noise.random_(0, 10)
    return x + noise


example_inputs = (torch.randn(6),)
