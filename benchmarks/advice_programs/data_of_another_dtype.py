"""Data is replaced by a copy of another dtype.

gb: Failed to mutate tensor data attribute
cause: break at `y.data = y.data.to(torch.float64)`
fix: `    y.data = y.data.to(torch.float64)` -> `    y = y.to(torch.float64)`
"""

import torch


def model(x):
    y = x * 2
    y.data = y.data.to(torch.float64)
    return y.cumsum(0)


example_inputs = (torch.randn(6),)
