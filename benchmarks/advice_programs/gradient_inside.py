"""A gradient penalty by torch.autograd.grad.

cause: break at `(slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)`
cause: eager at `(slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)`
fix: none: torch.func.grad is another program
train: yes
"""

import torch

weight = torch.nn.Parameter(torch.randn(4, 4))


def model(x):
    x = x.detach().requires_grad_()
    y = (x @ weight).tanh()
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y.mean() + slope.pow(2).mean()


example_inputs = (torch.randn(3, 4),)
