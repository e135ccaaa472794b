"""A pointer decides whether a copy is needed.

gb: Unsupported method call
cause: break at `if x.data_ptr() % 2:`
fix: `    if x.data_ptr() % 2:` -> ``
fix: `        x = x.clone()` -> ``
"""

import torch


def model(x):
    x = x * 2
    if x.data_ptr() % 2:
        x = x.clone()
    return x.cos()


example_inputs = (torch.randn(4, 3),)
