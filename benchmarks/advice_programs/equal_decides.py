"""Two tensors are compared as a whole.

gb: Data dependent operator
cause: break at `if torch.equal(x, y):`
fix: `    if torch.equal(x, y):` -> ``
fix: `        return x * 2` -> `    return torch.where((x == y).all(), x * 2, x - y)`
fix: `    return x - y` -> ``
"""

import torch


def model(x, y):
    x = x + 1
    y = y + 1
    if torch.equal(x, y):
        return x * 2
    return x - y


example_inputs = [(torch.ones(4), torch.ones(4)), (torch.ones(4), torch.zeros(4))]
