"""Graph breaks of five kinds, each with its own fix.

Look for: five lines that break, each with its GB code, the column range and what to write instead,
and six graphs where one would do. The line with NumPy breaks twice, at `default_rng(0)` and at
`.normal()`; the second costs the graph.
"""

import numpy as np
import torch
import torch.nn as nn


class Broken(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        x = torch.relu(self.first(x))
        print("activations", tuple(x.shape))
        if x.mean() > 0.5:
            x = x * 0.5
        scale = x.abs().max().item()
        x = self.second(x) / (scale + 1.0)
        torch._dynamo.graph_break()
        x = torch.tanh(x)
        x = x + float(np.random.default_rng(0).normal())
        return x.softmax(dim=-1)


torch.manual_seed(0)
model = Broken().eval()
example_inputs = (torch.randn(8, 64),)
