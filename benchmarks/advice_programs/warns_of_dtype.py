"""A warning in a library style.

gb: Attempted to call function marked as skipped
cause: break at `warnings.warn("inputs are scaled", stacklevel=2)`
fix: `    warnings.warn("inputs are scaled", stacklevel=2)` -> ``
"""

import warnings

import torch


def model(x):
    x = x / 255
    warnings.warn("inputs are scaled", stacklevel=2)
    return (x - 0.5) * 2


example_inputs = (torch.rand(3, 8),)
