"""Newton steps until the residual is small.

gb: Data-dependent branching
cause: break at `while (y * y - x).abs().max() > 1e-3:`
fix: none: the number of steps depends on the data; a loop of fixed length is another program
"""

import torch


def model(x):
    y = x.clone()
    while (y * y - x).abs().max() > 1e-3:
        y = 0.5 * (y + x / y)
    return y + 1


example_inputs = (torch.rand(8) + 1,)
