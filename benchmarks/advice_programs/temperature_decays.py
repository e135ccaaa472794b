"""A temperature of the module decays in each call.

cause: recompile at `y = (x / self.temperature).softmax(-1)`
fix: `        self.temperature = 2.0` -> `        self.temperature = torch.tensor(2.0)`
"""

import torch


class Sharpening(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = 2.0

    def forward(self, x):
        y = (x / self.temperature).softmax(-1)
        self.temperature = self.temperature * 0.9
        return y


model = Sharpening()
example_inputs = [(torch.randn(4),)] * 5
