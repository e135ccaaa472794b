"""A seed of the module changes ten times, beyond the limit.

cause: recompile at `y = x * (self.seed % 7)`
fix: set torch._dynamo.config.allow_unspec_int_on_nn_module = True
"""

import torch


class Seeded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seed = 100

    def forward(self, x):
        y = x * (self.seed % 7)
        self.seed = self.seed + 3
        return y


model = Seeded()
example_inputs = [(torch.ones(4),)] * 10
