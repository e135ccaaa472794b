"""Weights are read one by one.

gb: Tensor.tolist() with non-integer tensor
cause: break at `parts = [w * x for w in weights.tolist()]`
fix: `    parts = [w * x for w in weights.tolist()]` -> `    parts = [w * x for w in weights]`
"""

import torch


def model(x, weights):
    weights = weights.softmax(0)
    parts = [w * x for w in weights.tolist()]
    return torch.stack(parts).sum(0)


example_inputs = [(torch.randn(4), torch.randn(3)), (torch.randn(4), torch.randn(3))]
