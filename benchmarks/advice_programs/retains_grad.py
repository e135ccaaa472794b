"""The gradient of a hidden layer is kept.

gb: Tensor.retain_grad() with AOTDispatcher
cause: break at `h.retain_grad()`
fix: none: where the gradient is kept is the caller's choice
train: yes
"""

import torch


class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.one(x)
        h.retain_grad()
        return self.two(h).relu()


model = Kept()
example_inputs = (torch.randn(3, 4),)
