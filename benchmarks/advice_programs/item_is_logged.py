"""The loss is kept as a number for a log.

gb: Unsupported Tensor.item() call with capture_scalar_outputs=False
cause: break at `history.append(loss.item())`
cause: recompile at `history.append(loss.item())`
fix: set torch._dynamo.config.capture_scalar_outputs = True
"""

import torch

history = []
weight = torch.randn(6, 6)


def model(x):
    loss = (x @ weight).pow(2).mean()
    history.append(loss.item())
    return loss * 2


example_inputs = [(torch.randn(3, 6),), (torch.randn(3, 6),)]
