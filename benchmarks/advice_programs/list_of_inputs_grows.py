"""As many images as there happen to be.

cause: recompile at `return torch.stack(images).mean(0)`
fix: none: each length is another graph; one stacked tensor is another signature
"""

import torch


def model(images):
    return torch.stack(images).mean(0)


example_inputs = [([torch.ones(4)] * count,) for count in (2, 3, 4)]
