"""Pictures of several heights and widths.

cause: recompile at `y = torch.nn.functional.avg_pool2d(x, 2)`
fix: compile dynamic=True
"""

import torch


def model(x):
    y = torch.nn.functional.avg_pool2d(x, 2)
    return y.flatten(1).mean(1)


example_inputs = [(torch.randn(2, 3, h, w),) for h, w in ((8, 8), (12, 8), (12, 16), (6, 10))]
