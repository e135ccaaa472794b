"""The rate of a dropout falls with each call.

cause: recompile at `y = torch.nn.functional.dropout(x, self.rate)`
fix: none: the rate is part of the graph
"""

import torch


class Annealed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = 0.5

    def forward(self, x):
        y = torch.nn.functional.dropout(x, self.rate)
        self.rate = self.rate * 0.8
        return y + 1


model = Annealed()
example_inputs = [(torch.ones(8),)] * 4
