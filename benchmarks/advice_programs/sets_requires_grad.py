"""An input becomes a leaf that needs a gradient, inside.

gb: setattr() on Tensor.requires_grad
cause: break at `x.requires_grad = True`
fix: `    x.requires_grad = True` -> ``
fix: before x.requires_grad = True
"""

import torch


def model(x):
    x.requires_grad = True
    y = (x * x).sum()
    return y * 2


example_inputs = (torch.randn(3, 4),)
