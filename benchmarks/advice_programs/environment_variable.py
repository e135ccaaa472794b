"""A switch is read from the environment and shown.

gb: Failed to trace builtin operator
cause: break at `print("debug", debug)`
fix: `    print("debug", debug)` -> ``
"""

import os

import torch


def model(x):
    debug = os.environ.get("ADVICE_DEBUG", "0")
    x = x.sin()
    print("debug", debug)
    return x * 2


example_inputs = (torch.randn(4, 4),)
