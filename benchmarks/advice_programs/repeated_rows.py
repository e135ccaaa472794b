"""Each row is repeated by its count.

gb: Dynamic shape operator
cause: break at `y = torch.repeat_interleave(x, counts, dim=0)`
fix: set torch._dynamo.config.capture_dynamic_output_shape_ops = True
"""

import torch


def model(x, counts):
    x = x.relu()
    y = torch.repeat_interleave(x, counts, dim=0)
    return y.sum(0) * x.mean(0)


example_inputs = (torch.randn(3, 4), torch.tensor([1, 3, 2]))
