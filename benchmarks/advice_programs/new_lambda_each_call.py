"""A callback that is made anew for each call.

cause: recompile at `return callback(x) + 1`
fix: none: the caller makes it once
"""

import torch


def model(x, callback):
    return callback(x) + 1


calls = [lambda value: value * 2, lambda value: value * 2, lambda value: value * 2]
example_inputs = [(torch.ones(4), call) for call in calls]
