"""A loss is divided by a number taken out of a tensor.

gb: Unsupported Tensor.item() call with capture_scalar_outputs=False
cause: break at `count = mask.sum().item()`
fix: `    count = mask.sum().item()` -> `    count = mask.sum()`
"""

import torch


def model(x, mask):
    loss = (x * x * mask).sum()
    count = mask.sum().item()
    return loss / count + x.mean()


example_inputs = [(torch.randn(6), torch.ones(6)), (torch.randn(6), torch.eye(6)[0])]
