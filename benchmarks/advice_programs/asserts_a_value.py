"""An assertion with a message that is built.

gb: Data-dependent branching
cause: break at `assert total > 0, ValueError("empty", x.shape)`
fix: `    assert total > 0, ValueError("empty", x.shape)` -> `    assert total > 0, "empty"`
"""

import torch


def model(x):
    total = x.sum()
    assert total > 0, ValueError("empty", x.shape)
    return x / total


example_inputs = (torch.rand(4, 3),)
