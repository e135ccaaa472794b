"""A tensor becomes text for a cache key.

gb: Failed to trace builtin operator
cause: break at `key = str(x)`
fix: none: the text holds the values
"""

import torch


def model(x):
    x = x + 1
    key = str(x)
    return x * len(key)


example_inputs = (torch.ones(3),)
