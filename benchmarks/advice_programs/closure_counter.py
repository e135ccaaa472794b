"""A closure holds a number that changes.

cause: recompile at `scale *= 2.0`
cause: recompile at `return x * scale`
fix: `    scale = 1.0` -> `    scale = torch.tensor(1.0)`
fix: `        scale *= 2.0` -> `        scale = scale * 2.0`
"""

import torch


def made():
    scale = 1.0

    def scaled(x):
        nonlocal scale
        scale *= 2.0
        return x * scale

    return scaled


model = made()
example_inputs = [(torch.ones(4),)] * 4
