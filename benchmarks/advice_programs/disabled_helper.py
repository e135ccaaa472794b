"""A helper that is kept out of the compiler.

gb: Skip calling `torch.compiler.disable()`d function
cause: break at `y = normalised(x)`
fix: `@torch.compiler.disable` -> ``
"""

import torch


@torch.compiler.disable
def normalised(x):
    return x / x.norm(dim=-1, keepdim=True)


def model(x):
    x = x.relu() + 1
    y = normalised(x)
    return y @ y.T


example_inputs = (torch.randn(3, 8),)
