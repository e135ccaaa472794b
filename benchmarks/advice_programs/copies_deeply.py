"""State is copied with deepcopy.

gb: Attempted to copy.deepcopy a tensor
cause: break at `before = copy.deepcopy(x)`
fix: `    before = copy.deepcopy(x)` -> `    before = x.clone()`
"""

import copy

import torch


def model(x):
    x = x + 1
    before = copy.deepcopy(x)
    x.mul_(3)
    return x - before


example_inputs = (torch.randn(6),)
