"""An input that is sometimes a transposed view.

cause: recompile at `return (x + 1).relu().sum(0)`
fix: before x = x.contiguous()
"""

import torch


def model(x):
    return (x + 1).relu().sum(0)


example_inputs = [(torch.randn(4, 4),), (torch.randn(4, 4).t(),)]
