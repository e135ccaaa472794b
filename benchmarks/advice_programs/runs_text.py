"""Code as text is run in forward.

gb: Failed to trace builtin operator
cause: break at `exec("bound = 6", settings)`
fix: `    exec("bound = 6", settings)` -> `    settings["bound"] = 6`
"""

import torch


def model(x):
    x = x + 1
    settings = {}
    exec("bound = 6", settings)
    return x.clamp(max=settings["bound"])


example_inputs = (torch.ones(3),)
