"""A module counts its calls.

cause: recompile at `self.calls += 1`
cause: recompile at `return x * self.calls`
fix: set torch._dynamo.config.allow_unspec_int_on_nn_module = True
"""

import torch


class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 1

    def forward(self, x):
        self.calls += 1
        return x * self.calls


model = Counted()
example_inputs = [(torch.ones(4),)] * 5
