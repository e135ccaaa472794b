"""Tensors are collected in a set.

gb: Attempted to wrap a set with tensors
cause: break at `total = sum(one.sum() for one in kept)`
fix: `kept = {torch.ones(3), torch.ones(2)}` -> `kept = [torch.ones(3), torch.ones(2)]`
"""

import torch

kept = {torch.ones(3), torch.ones(2)}


def model(x):
    x = x * 2
    total = sum(one.sum() for one in kept)
    return x + total


example_inputs = (torch.rand(4, 3),)
