"""A ResNet bottleneck in evaluation mode: convolutions with pointwise work between them.

Look for: the convolutions are library calls, each followed by one kernel of batch norm and ReLU;
`--show memory` has the buffers that are reused.
"""

import torch
import torch.nn as nn


class Bottleneck(nn.Module):
    def __init__(self, channels=64, inner=16):
        super().__init__()
        self.reduce = nn.Conv2d(channels, inner, 1, bias=False)
        self.norm_1 = nn.BatchNorm2d(inner)
        self.convolve = nn.Conv2d(inner, inner, 3, padding=1, bias=False)
        self.norm_2 = nn.BatchNorm2d(inner)
        self.expand = nn.Conv2d(inner, channels, 1, bias=False)
        self.norm_3 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = torch.relu(self.norm_1(self.reduce(x)))
        h = torch.relu(self.norm_2(self.convolve(h)))
        return torch.relu(x + self.norm_3(self.expand(h)))


torch.manual_seed(0)
model = Bottleneck().eval()
example_inputs = (torch.randn(4, 64, 28, 28),)
