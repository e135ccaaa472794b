"""A Llama block: RMSNorm, rotary positions, grouped attention, SwiGLU.

Look for: the rotation (a slice, a negation and a cat) in `--show kernels`; it becomes one kernel,
though it reads each half of the heads twice.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, width=128, heads=4, groups=2, inner=352):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm_1, self.norm_2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def angles(self, time, device):
        frequency = 10000 ** (-torch.arange(0, self.size, 2, device=device) / self.size)
        angle = torch.arange(time, device=device)[:, None] * frequency
        return torch.cat((angle, angle), dim=-1)

    def attention(self, x):
        batch, time, width = x.shape
        angle = self.angles(time, x.device)
        q = self.q(x).view(batch, time, self.heads, -1).transpose(1, 2)
        k = self.k(x).view(batch, time, self.groups, -1).transpose(1, 2)
        v = self.v(x).view(batch, time, self.groups, -1).transpose(1, 2)
        q, k = rotate(q, angle.cos(), angle.sin()), rotate(k, angle.cos(), angle.sin())
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o(mixed.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


torch.manual_seed(0)
model = LlamaBlock().eval()
example_inputs = (torch.randn(2, 64, 128),)
