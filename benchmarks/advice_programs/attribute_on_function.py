"""A counter is kept on a function.

gb: setattr() on unsupported type
cause: break at `helper.calls = helper.calls + 1`
fix: none: where the counter lives is the program's choice
"""

import torch


def helper(x):
    return x * 2


helper.calls = 0


def model(x):
    x = x.sin()
    helper.calls = helper.calls + 1
    return helper(x) + 1


example_inputs = (torch.randn(4, 3),)
