"""Every second call runs without gradients.

cause: recompile at `return layer(x).relu()`
cause: recompile at `results.append(inner(torch.ones(2, 4)))`
fix: none: the two modes are two graphs
"""

import torch

layer = torch.nn.Linear(4, 4)


@torch.compile
def inner(x):
    return layer(x).relu()


results = []
for frozen in (False, True, False, True):
    with torch.set_grad_enabled(not frozen):
        results.append(inner(torch.ones(2, 4)))
