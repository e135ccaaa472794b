"""A size is marked as dynamic, and the model needs one value of it.

cause: failure at `return x + torch.ones(8)`
fix: `    return x + torch.ones(8)` -> `    return x + torch.ones(x.shape[0])`
"""

import torch


def model(x):
    return x + torch.ones(8)


batch = torch.randn(8)
torch._dynamo.mark_dynamic(batch, 0)
example_inputs = (batch,)
