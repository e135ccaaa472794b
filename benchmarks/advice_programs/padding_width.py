"""Padded up to a multiple, so the padding varies.

cause: recompile at `return torch.nn.functional.pad(x, (0, width)).cumsum(-1)`
fix: compile dynamic=True
"""

import torch


def model(x, width):
    return torch.nn.functional.pad(x, (0, width)).cumsum(-1)


example_inputs = [(torch.ones(2, 8), width) for width in (3, 4, 5, 6)]
