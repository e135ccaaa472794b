"""A check of the input raises.

gb: Data-dependent branching
cause: break at `if torch.isnan(x).any():`
fix: `    if torch.isnan(x).any():` -> `    torch._assert_async(~torch.isnan(x).any(), "nan")`
fix: `        raise ValueError("nan in the input")` -> ``
"""

import torch


def model(x):
    if torch.isnan(x).any():
        raise ValueError("nan in the input")
    return torch.log1p(x.abs()) * 2


example_inputs = (torch.randn(4, 8),)
