"""Dynamic shapes done right: the batch is marked dynamic, the length is fixed.

Look for: one compile for four batch sizes, a symbol instead of the size in the graph, and the one
guard that remains on it. Without `mark_dynamic`, the second size costs another compile.
"""

import torch
import torch.nn as nn


class Pool(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        weights = torch.softmax(self.score(x), dim=1)
        return (weights * x).sum(dim=1) / x.shape[0]


torch.manual_seed(0)
model = Pool().eval()


def example_inputs():
    sets = []
    for batch in (2, 3, 5, 8):
        x = torch.randn(batch, 16, 48)
        torch._dynamo.mark_dynamic(x, 0)
        sets.append((x,))
    return sets
