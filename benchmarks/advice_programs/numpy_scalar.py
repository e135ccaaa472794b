"""A numpy float as an argument.

cause: recompile at `return x * rate`
fix: none: it is compiled once for each type
"""

import numpy as np
import torch


def model(x, rate):
    return x * rate


example_inputs = [(torch.ones(4), np.float32(0.1)), (torch.ones(4), 0.2), (torch.ones(4), 0.3)]
