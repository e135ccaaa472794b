"""A result goes to a buffer of another shape.

gb: Shape mismatch with out= tensor variant
cause: break at `torch.add(x, 1, out=out)`
fix: `    torch.add(x, 1, out=out)` -> `    out = x + 1`
"""

import torch


def model(x):
    x = x * 2
    out = torch.empty(0)
    torch.add(x, 1, out=out)
    return out * x


example_inputs = (torch.randn(6),)
