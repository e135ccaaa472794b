"""An operator of one's own without a fake implementation.

gb: Operator does not support running with fake tensors
cause: break at `y = torch.ops.advice_bench.halve(x)`
fix: none: the operator needs a fake implementation
"""

import torch

library = torch.library.Library("advice_bench", "FRAGMENT")
library.define("halve(Tensor x) -> Tensor")
library.impl("halve", lambda x: x / 2, "CPU")


def model(x):
    x = x + 1
    y = torch.ops.advice_bench.halve(x)
    return y * 3


example_inputs = (torch.randn(3, 6),)
