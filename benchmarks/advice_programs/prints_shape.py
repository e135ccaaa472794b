"""A print that was left in.

gb: Failed to trace builtin operator
cause: break at `print("features", tuple(h.shape))`
fix: `        print("features", tuple(h.shape))` -> ``
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 8)
        self.two = torch.nn.Linear(8, 2)

    def forward(self, x):
        h = self.one(x).relu()
        print("features", tuple(h.shape))
        return self.two(h)


model = Net()
example_inputs = (torch.randn(3, 4),)
