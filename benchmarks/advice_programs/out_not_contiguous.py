"""A result goes to a transposed buffer.

gb: Attempted to call op with non-contiguous `out=` tensor
cause: break at `torch.mul(x, 2, out=out)`
fix: `    torch.mul(x, 2, out=out)` -> `    out = x * 2`
"""

import torch


def model(x):
    out = torch.empty(4, 3).t()
    torch.mul(x, 2, out=out)
    return out.sum(0)


example_inputs = (torch.randn(3, 4),)
