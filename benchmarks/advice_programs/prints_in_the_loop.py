"""A print for each layer.

gb: Failed to trace builtin operator
cause: break at `print("layer", number)`
fix: `            print("layer", number)` -> ``
"""

import torch


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            print("layer", number)
            x = layer(x).relu()
        return x


model = Stack()
example_inputs = (torch.randn(3, 4),)
