"""A parameter is made in forward.

gb: Attempted to use `torch.nn.Parameter()` constructor with Dynamo
cause: break at `scale = torch.nn.Parameter(torch.ones(x.shape[-1]))`
fix: `    scale = torch.nn.Parameter(torch.ones(x.shape[-1]))`
    -> `    scale = torch.ones(x.shape[-1])`
"""

import torch


def model(x):
    x = x.tanh()
    scale = torch.nn.Parameter(torch.ones(x.shape[-1]))
    return (x * scale).detach().sum(0)


example_inputs = (torch.randn(3, 4),)
