"""Compiled with dynamic=False, and called with many lengths.

cause: recompile at `return (tokens @ weight).softmax(-1)`
fix: compile dynamic=True
"""

import torch

weight = torch.randn(4, 4)


def forward(tokens):
    return (tokens @ weight).softmax(-1)


model = torch.compile(forward, dynamic=False)
example_inputs = [(torch.randn(length, 4),) for length in (3, 4, 5, 6, 7)]
