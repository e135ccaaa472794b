"""A Python list is indexed by a tensor.

gb: Unsupported Tensor.item() call with capture_scalar_outputs=False
cause: break at `scale = SCALES[level]`
fix: `    scale = SCALES[level]` -> `    scale = torch.tensor(SCALES)[level]`
"""

import torch

SCALES = [0.5, 1.0, 2.0]


def model(x, level):
    x = x.exp()
    scale = SCALES[level]
    return x * scale


example_inputs = [(torch.randn(3), torch.tensor(1)), (torch.randn(3), torch.tensor(2))]
