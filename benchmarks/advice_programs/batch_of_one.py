"""A single request, then batches.

cause: recompile at `return x.softmax(-1) * 2`
fix: before torch._dynamo.decorators.mark_unbacked(x, 0)
"""

import torch


def model(x):
    return x.softmax(-1) * 2


example_inputs = [(torch.randn(size, 4),) for size in (4, 5, 1, 6)]
