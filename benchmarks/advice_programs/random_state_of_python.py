"""random.Random with a seed object in forward.

gb: Unsupported method call
cause: break at `factor = dice.choice([1, 2, 3])`
fix: none: the numbers come from that generator
"""

import random

import torch

dice = random.Random(5)


def model(x):
    x = x + 1
    factor = dice.choice([1, 2, 3])
    return x * factor


example_inputs = [(torch.randn(4, 3),), (torch.randn(4, 3),)]
