"""A training step: what the forward saves for the backward, and what is recomputed.

Run with `--train`. Look for: `--show autograd` lists every value passed to the backward, its bytes
and why it is saved or recomputed (dropout's mask is); `tcw profile` times the optimizer separately.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self, width=64, classes=10):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.LayerNorm(4 * width),
            nn.Dropout(0.1),
            nn.Linear(4 * width, classes),
        )

    def forward(self, x, target):
        return F.cross_entropy(self.body(x), target)


torch.manual_seed(0)
model = Classifier().train()
example_inputs = (torch.randn(32, 64), torch.randint(0, 10, (32,)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
