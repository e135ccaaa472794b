"""A size is marked as dynamic, and viewed with a constant.

cause: failure at `return x.view(6, 2, 2).sum(1)`
fix: `    return x.view(6, 2, 2).sum(1)` -> `    return x.view(-1, 2, 2).sum(1)`
"""

import torch


def model(x):
    x = x * 2
    return x.view(6, 2, 2).sum(1)


rows = torch.randn(6, 4)
torch._dynamo.mark_dynamic(rows, 0)
example_inputs = (rows,)
