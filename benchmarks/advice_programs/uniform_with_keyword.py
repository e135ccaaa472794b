"""A uniform draw with its bounds by name.

gb: Tensor.uniform_ op called with `from` keyword
cause: break at `u = torch.empty_like(x).uniform_(**bounds)`
fix: `    u = torch.empty_like(x).uniform_(**bounds)`
    -> `    u = torch.empty_like(x).uniform_(-1, 1)`
"""

import torch

bounds = {"from": -1.0, "to": 1.0}


def model(x):
    x = x.sin()
    u = torch.empty_like(x).uniform_(**bounds)
    return x * u


example_inputs = (torch.randn(6),)
