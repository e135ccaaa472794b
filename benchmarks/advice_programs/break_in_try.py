"""A print in a try block.

gb: Failed to trace builtin operator
cause: break at `print("definite")`
fix: `        print("definite")` -> ``
"""

import torch


def model(x):
    x = x @ x.T
    try:
        y = torch.linalg.cholesky(x)
        print("definite")
    except torch.linalg.LinAlgError:
        y = x.sqrt()
    return y + 1


example_inputs = (torch.eye(4),)
