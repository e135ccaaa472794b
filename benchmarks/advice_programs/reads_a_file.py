"""A constant is read from a file in forward.

gb: Failed to trace builtin operator
cause: break at `with open(__file__) as stream:`
fix: none: what is read moves out of forward by hand
"""

import torch


def model(x):
    x = x + 1
    with open(__file__) as stream:
        first = len(stream.readline())
    return x * min(first, 1)


example_inputs = (torch.ones(3),)
