"""A loop runs as often as a tensor says.

gb: Failed to trace builtin operator
cause: break at `for _ in range(steps):`
fix: none: the number of rounds depends on the data
"""

import torch


def model(x, steps):
    x = x.sin()
    for _ in range(steps):
        x = x * 1.5
    return x + 1


example_inputs = [(torch.randn(3), torch.tensor(2)), (torch.randn(3), torch.tensor(3))]
