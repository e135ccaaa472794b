"""A work tensor is pointed at another's storage.

gb: Unsupported Tensor.set_() call
cause: break at `view.set_(x.untyped_storage(), 0, x.shape, x.stride())`
fix: `    view = torch.empty(0)` -> `    view = x`
fix: `    view.set_(x.untyped_storage(), 0, x.shape, x.stride())` -> ``
"""

import torch


def model(x):
    x = x * 2
    view = torch.empty(0)
    view.set_(x.untyped_storage(), 0, x.shape, x.stride())
    return view + 1


example_inputs = (torch.randn(6),)
