"""Duck typing over a lazy iterator.

gb: Unsupported hasattr call
cause: break at `many = len(rows) if hasattr(rows, "__len__") else 2`
fix: `    many = len(rows) if hasattr(rows, "__len__") else 2` -> `    many = 2`
"""

import torch


def model(x):
    x = x + 1
    rows = map(torch.sin, x)
    many = len(rows) if hasattr(rows, "__len__") else 2
    return sum(rows) * many


example_inputs = (torch.randn(3, 4),)
