"""A context manager without a class that torch knows.

gb: Failed to trace builtin operator
cause: break at `with open(os.devnull):`
fix: `    with open(os.devnull):` -> ``
fix: `        y = x.cos()` -> `    y = x.cos()`
"""

import os

import torch


def model(x):
    x = x * 2
    with open(os.devnull):
        y = x.cos()
    return y + 1


example_inputs = (torch.randn(4, 3),)
