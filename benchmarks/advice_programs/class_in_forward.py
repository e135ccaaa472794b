"""A class is defined in forward.

gb: Invalid call to __build_class__
cause: break at `class Pair:`
fix: set torch._dynamo.config.enable_trace_load_build_class = True
"""

import torch


def model(x):
    x = x.sin()

    class Pair:
        scale = 3.0

    return x * Pair.scale + 1


example_inputs = (torch.randn(4, 3),)
