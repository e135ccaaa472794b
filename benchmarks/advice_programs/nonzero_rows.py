"""Rows that are active are gathered.

gb: Dynamic shape operator
cause: break at `rows = torch.nonzero(active).squeeze(1)`
fix: set torch._dynamo.config.capture_dynamic_output_shape_ops = True
"""

import torch


def model(x, active):
    h = x.tanh()
    rows = torch.nonzero(active).squeeze(1)
    return h[rows].sum(0) + h.mean(0)


example_inputs = [
    (torch.randn(5, 3), torch.tensor([True, False, True, True, False])),
    (torch.randn(5, 3), torch.tensor([True, False, False, False, False])),
]
