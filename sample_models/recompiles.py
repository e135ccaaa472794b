"""Four ways to make torch.compile recompile.

Look for: each call's failed guard, with the expected value and the actual one: a float argument
that changes, a batch that grows, a dtype, and a list that gets longer. The second batch size makes
the dimension dynamic, so the third costs nothing.
"""

import torch
import torch.nn as nn


class Restless(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, temperature=1.0, extras=()):
        h = self.linear(x.float()) / temperature
        for extra in extras:
            h = h + extra
        return torch.softmax(h, dim=-1)


torch.manual_seed(0)
model = Restless().eval()


def example_inputs():
    x = torch.randn(4, 32)
    return [
        (x, 1.0),
        (x, 0.5),
        (torch.randn(6, 32), 0.5),
        (torch.randn(8, 32), 0.5),
        (x.double(), 0.5),
        (x, 0.5, [x]),
    ]
