"""A module keeps all rows that it has seen.

cause: recompile at `self.seen = torch.cat([self.seen, x])`
fix: set torch._dynamo.config.force_nn_module_property_static_shapes = False
fix: set torch._dynamo.config.force_parameter_static_shapes = False
"""

import torch


class Memory(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2, 4))

    def forward(self, x):
        self.seen = torch.cat([self.seen, x])
        return (x @ self.seen.T).softmax(-1).sum(0).mean()


model = Memory()
example_inputs = [(torch.randn(2, 4),) for _ in range(4)]
