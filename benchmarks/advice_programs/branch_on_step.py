"""A warm-up ends at a step that is an argument.

cause: recompile at `if step < 3:`
fix: none: the two branches are two graphs; there is one for each already with dynamic=True
"""

import torch


def model(x, step):
    if step < 3:
        return x * step
    return x * 3


example_inputs = [(torch.ones(4), step) for step in (1, 2, 3, 4, 5)]
