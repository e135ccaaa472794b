"""Evaluation in another precision.

cause: recompile at `return x.cos() * 2`
fix: none: each dtype is another graph
"""

import torch


def model(x):
    return x.cos() * 2


example_inputs = [(torch.ones(4),), (torch.ones(4, dtype=torch.bfloat16),)]
