"""A chain of pointwise operations: the simplest win from fusion.

Look for: one graph, one kernel. Eager reads and writes the tensor once per operation, compiled code
once in total. `--show fusion` has no scheduler pairs: the chain was inlined into one loop before
the scheduler saw it.
"""

import torch
import torch.nn.functional as F


def model(x, y):
    a = torch.sin(x) * y + 1.0
    b = F.gelu(a) - torch.tanh(x)
    return torch.exp(-b * b) * torch.sigmoid(y)


torch.manual_seed(0)
example_inputs = (torch.randn(1024, 1024), torch.randn(1024, 1024))
