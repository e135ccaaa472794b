"""Blocks compiled one by one, each with a float of its own.

cause: recompile at `return self.layer(x).relu() * self.scale`
fix: `        self.scale = scale` -> `        self.register_buffer("scale", torch.tensor(scale))`
"""

import torch


class Block(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.scale = scale

    def forward(self, x):
        return self.layer(x).relu() * self.scale


blocks = torch.nn.ModuleList(Block(1.0 / (depth + 1)) for depth in range(4))
for block in blocks:
    block.compile()
x = torch.randn(2, 4)
with torch.no_grad():
    for block in blocks:
        x = block(x)
