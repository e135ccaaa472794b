"""The target size of a resize as a tuple.

cause: recompile at `return torch.nn.functional.interpolate(x, size=size)`
fix: compile dynamic=True
"""

import torch


def model(x, size):
    return torch.nn.functional.interpolate(x, size=size)


example_inputs = [(torch.ones(1, 1, 4, 4), size) for size in ((8, 8), (8, 6), (10, 12), (5, 7))]
