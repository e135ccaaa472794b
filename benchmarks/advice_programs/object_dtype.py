"""An array of objects.

gb: ndarray.astype(object)
cause: break at `boxed = x.numpy().astype(object)`
fix: `    boxed = x.numpy().astype(object)` -> `    boxed = x.numpy()`
"""

import torch


def model(x):
    x = x * 2
    boxed = x.numpy().astype(object)
    return x + float(len(boxed))


example_inputs = (torch.rand(4, 3),)
