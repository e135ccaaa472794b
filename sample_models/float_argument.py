"""A float argument that changes in each call and is specialised each time.

The second compile makes a float dynamic if it is only used in arithmetic. `math.exp` needs its
value, so each new temperature is a new constant and another compile. Look for: `tcw profile` names
the line, and compares the time of a compile with that of a call.
"""

import math

import torch
import torch.nn as nn


class Annealed(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.score = nn.Linear(width, width)

    def forward(self, x, temperature=1.0):
        sharpness = 1.0 / math.exp(temperature)
        return torch.softmax(self.score(x) * sharpness, dim=-1)


torch.manual_seed(0)
model = Annealed().eval()
x = torch.randn(64, 128)
example_inputs = [(x, 1.0), (x, 0.75), (x, 0.5), (x, 0.25)]
