"""A mask as long as the longest sequence.

gb: Unsupported Tensor.item() call with capture_scalar_outputs=False
cause: break at `longest = int(lengths.max())`
fix: set torch._dynamo.config.capture_scalar_outputs = True
"""

import torch


def model(lengths):
    longest = int(lengths.max())
    steps = torch.arange(longest)
    return (steps[None, :] < lengths[:, None]).float() * 2


example_inputs = [(torch.tensor([3, 5, 2]),), (torch.tensor([7, 5, 2]),)]
