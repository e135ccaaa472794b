"""A fallback by exception.

cause: break at `y = torch.linalg.cholesky(x)`
cause: eager at `y = torch.linalg.cholesky(x)`
fix: none: whether it raises depends on the data
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
