"""A transformer block with four obstacles for the compiler.

Run with `--train`. Look for: a `print` and a branch on data split the forward into three graphs; a
float argument and a growing batch recompile it. The findings are ranked by cost.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width=128, heads=4):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x, temperature):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * temperature
        weights = torch.softmax(scores, dim=-1)
        return self.project((weights @ v).transpose(1, 2).reshape(batch, time, width))

    def forward(self, x, temperature=0.125):
        x = x + self.attention(self.norm_1(x), temperature)
        print("attention done", tuple(x.shape))
        h = self.norm_2(x)
        if h.abs().max() > 8:
            h = h.clamp(-8, 8)
        h = F.gelu(self.up(h))
        return x + self.down(h)


torch.manual_seed(0)
model = Block()
x = torch.randn(4, 64, 128)
example_inputs = [(x, 0.125), (x, 0.25), (x, 0.5), (torch.randn(6, 64, 128), 0.5)]
