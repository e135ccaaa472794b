"""A fit in the middle of a model.

gb: Dynamic shape operator
cause: break at `solution = torch.linalg.lstsq(a, b).solution`
fix: none: an operator without a meta kernel
"""

import torch


def model(a, b):
    a = a + 1
    solution = torch.linalg.lstsq(a, b).solution
    return a @ solution - b


example_inputs = (torch.randn(6, 3), torch.randn(6, 2))
