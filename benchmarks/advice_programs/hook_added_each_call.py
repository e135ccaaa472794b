"""A hook is registered anew by each call.

cause: recompile at `return self.layer(x).relu()`
cause: recompile at `self.layer.register_forward_hook(double)`
fix: none: the hook is registered once, outside
"""

import torch


def double(module, inputs, output):
    return output * 2


class Hooked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        self.layer.register_forward_hook(double)
        return self.layer(x).relu()


model = Hooked()
example_inputs = [(torch.randn(2, 4),) for _ in range(3)]
