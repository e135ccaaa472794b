"""A print under autocast.

gb: Failed to trace builtin operator
cause: break at `print("half")`
fix: `        print("half")` -> ``
"""

import torch


def model(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        print("half")
        z = y @ w
    return z.float() + 1


example_inputs = (torch.randn(4, 4), torch.randn(4, 4))
