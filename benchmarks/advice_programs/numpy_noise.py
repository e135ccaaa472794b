"""A legacy numpy random state.

gb: Unsupported method call
cause: break at `order = generator.permutation(4).tolist()`
fix: none: the numbers come from numpy's generator
"""

import numpy as np
import torch

generator = np.random.RandomState(3)


def model(x):
    x = x * 2
    order = generator.permutation(4).tolist()
    return x[order] + 1


example_inputs = (torch.randn(4, 3),)
