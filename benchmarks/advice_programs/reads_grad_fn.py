"""The autograd node is looked at.

gb: Tensor with grad_fn()
cause: break at `name = type(h.grad_fn).__name__`
fix: none: the node does not exist while tracing
train: yes
"""

import torch

names = []


class Named(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.layer(x)
        name = type(h.grad_fn).__name__
        return h.relu() * len(name)


model = Named()
example_inputs = (torch.randn(3, 4),)
