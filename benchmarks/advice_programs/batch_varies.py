"""The last batch of an epoch is smaller.

cause: recompile at `return self.layers(x)`
fix: before torch._dynamo.mark_dynamic(x, 0)
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())

    def forward(self, x):
        return self.layers(x)


model = Net()
example_inputs = [(torch.randn(size, 4),) for size in (8, 5, 3)]
