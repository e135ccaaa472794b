"""A head size computed from the length.

cause: recompile at `return x.view(heads, -1).softmax(-1)`
cause: recompile at `heads = int(x.shape[0] ** 0.5)`
fix: none: the view depends on the root
"""

import torch


def model(x):
    heads = int(x.shape[0] ** 0.5)
    return x.view(heads, -1).softmax(-1)


example_inputs = [(torch.randn(size),) for size in (16, 36, 64)]
