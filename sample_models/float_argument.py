"""A float argument that changes each call, and is compiled in each time.

A float that only takes part in arithmetic is made a variable by the second compile. `math.exp`
needs its value, so each new temperature is another constant, and another compile. Look for: `tcw
profile` names the line and what a compile takes beside what a call takes.
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
