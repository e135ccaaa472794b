"""A whole training step is compiled.

gb: Unsupported Tensor.backward() call
cause: break at `loss.backward()`
fix: none: compile the forward alone; the step's structure changes
"""

import torch

weight = torch.randn(4, 4, requires_grad=True)


def model(x):
    loss = (x @ weight).pow(2).mean()
    loss.backward()
    return loss.detach() * 2


example_inputs = (torch.randn(3, 4),)
