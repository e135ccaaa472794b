"""Long inputs go another way.

cause: recompile at `if x.shape[0] > 6:`
fix: none: the two ways are two graphs
"""

import torch


def model(x):
    if x.shape[0] > 6:
        return x.cumsum(0)
    return x.flip(0)


example_inputs = [(torch.randn(size),) for size in (4, 8, 5, 9)]
