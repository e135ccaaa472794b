"""A norm becomes a Python float in the middle.

gb: Unsupported Tensor.item() call with capture_scalar_outputs=False
cause: break at `norm = float(x.norm())`
fix: `    norm = float(x.norm())` -> `    norm = x.norm()`
"""

import torch


def model(x):
    norm = float(x.norm())
    y = x / norm
    return y.relu() * norm


example_inputs = [(torch.randn(6),), (torch.randn(6) * 4,)]
