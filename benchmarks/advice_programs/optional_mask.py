"""A mask that is sometimes None.

cause: recompile at `if mask is not None:`
fix: none: with and without a mask are two graphs
"""

import torch


def model(x, mask=None):
    if mask is not None:
        x = x * mask
    return x.softmax(-1)


example_inputs = [(torch.ones(4),), (torch.ones(4), torch.ones(4))]
