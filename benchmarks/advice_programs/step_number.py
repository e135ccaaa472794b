"""A step number scales the noise.

cause: recompile at `return x * (1 - step / 100)`
fix: compile dynamic=True
"""

import torch


def model(x, step):
    return x * (1 - step / 100)


example_inputs = [(torch.ones(4), step) for step in (10, 20, 30, 40)]
