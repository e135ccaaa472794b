"""A transformer block with three things for a compiler to trip over."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d=256, heads=8):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attention(self, x, temperature):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * temperature
        weights = torch.softmax(scores, dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x, temperature=0.125):
        x = x + self.attention(self.ln1(x), temperature)
        print("attention done", tuple(x.shape))
        h = self.ln2(x)
        if h.abs().max() > 8:
            h = h.clamp(-8, 8)
        h = F.gelu(self.fc1(h))
        return x + self.fc2(h)


torch.manual_seed(0)
model = Block()
x = torch.randn(4, 128, 256)
example_inputs = [(x, 0.125), (x, 0.25), (x, 0.5), (torch.randn(6, 128, 256), 0.5)]
