"""A ragged batch is built in forward.

gb: Attempted to wrap strided NestedTensor
cause: break at `ragged = torch.nested.nested_tensor([x[:2], x])`
fix: none: another layout is another program
"""

import torch


def model(x):
    x = x * 2
    ragged = torch.nested.nested_tensor([x[:2], x])
    return torch.nested.to_padded_tensor(ragged, 0.0).sum(1)


example_inputs = (torch.randn(4, 3),)
