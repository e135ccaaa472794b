"""A gate chooses between two branches by a mean.

gb: Data-dependent branching
cause: break at `if gate.mean() > 0.5:`
fix: `        if gate.mean() > 0.5:` -> ``
fix: `            y = self.one(x)` -> ``
fix: `        else:` -> ``
fix: `            y = self.two(x)`
    -> `        y = torch.where(gate.mean() > 0.5, self.one(x), self.two(x))`
"""

import torch


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(6, 6)
        self.two = torch.nn.Linear(6, 6)

    def forward(self, x):
        gate = x.sigmoid()
        if gate.mean() > 0.5:
            y = self.one(x)
        else:
            y = self.two(x)
        return y * gate


model = Gated()
example_inputs = [(torch.ones(3, 6),), (-torch.ones(3, 6),)]
