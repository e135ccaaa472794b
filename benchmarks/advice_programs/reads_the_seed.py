"""A layer draws a new seed for each call.

gb: torch.* op returned non-Tensor
cause: break at `self.seed = torch.initial_seed() % 1000`
fix: none: the seed is a number of the host
"""

import torch


class Seeded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seed = 0
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        x = self.layer(x)
        self.seed = torch.initial_seed() % 1000
        return x.relu() + 1


model = Seeded()
example_inputs = (torch.randn(4, 3),)
