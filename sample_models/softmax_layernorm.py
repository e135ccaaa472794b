"""Softmax, a residual and LayerNorm: reductions over the same rows.

Look for: one graph, one kernel, several loop nests. `--show fusion` lists which reductions were
fused and which pairs were kept apart, with Inductor's reasons.
"""

import torch
import torch.nn as nn


class SoftmaxLayerNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        weights = torch.softmax(x, dim=-1)
        return self.norm(weights + x)


torch.manual_seed(0)
model = SoftmaxLayerNorm(1024).eval()
example_inputs = (torch.randn(1024, 1024),)
