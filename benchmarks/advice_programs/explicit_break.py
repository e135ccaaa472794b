"""A break that somebody asked for.

gb: Call to `torch._dynamo.graph_break()`
cause: break at `torch._dynamo.graph_break()`
fix: `    torch._dynamo.graph_break()` -> ``
"""

import torch


def model(x):
    y = x.sigmoid()
    torch._dynamo.graph_break()
    return y * x


example_inputs = (torch.randn(3, 8),)
