"""Distinct ids are counted.

gb: Dynamic shape operator
cause: break at `ids = torch.unique(tokens)`
fix: set torch._dynamo.config.capture_dynamic_output_shape_ops = True
"""

import torch

table = torch.randn(20, 4)


def model(tokens):
    ids = torch.unique(tokens)
    return table[ids].sum(0) * 2


example_inputs = [(torch.tensor([3, 3, 5]),), (torch.tensor([1, 2, 3]),)]
