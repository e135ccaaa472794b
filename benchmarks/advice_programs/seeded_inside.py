"""A generator object is made in forward.

gb: An opaque object was created in the middle of the program.
cause: break at `generator = torch.Generator().manual_seed(3)`
fix: none: the numbers come from that generator
"""

import torch


def model(x):
    x = x + 1
    generator = torch.Generator().manual_seed(3)
    keep = torch.rand(x.shape, generator=generator) > 0.5
    return x * keep


example_inputs = (torch.randn(4, 3),)
