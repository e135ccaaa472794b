"""An input that needs a gradient in some calls.

cause: recompile at `return (x * 2).sin()`
fix: none: with and without a gradient are two graphs
"""

import torch


def model(x):
    return (x * 2).sin()


example_inputs = [(torch.ones(4),), (torch.ones(4, requires_grad=True),)]
