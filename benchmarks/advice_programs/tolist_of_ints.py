"""Row numbers are taken out of a tensor.

gb: Data dependent operator
cause: break at `for row in rows.tolist():`
fix: set torch._dynamo.config.capture_scalar_outputs = True
"""

import torch


def model(x, rows):
    y = x.sin()
    total = y[0] * 0
    for row in rows.tolist():
        total = total + row * y.sum()
    return total


example_inputs = [
    (torch.randn(5, 3), torch.tensor([0, 2])),
    (torch.randn(5, 3), torch.tensor([4, 1])),
]
