"""A skipped function is called for each layer.

cause: eager at `time.sleep(0)`
cause: break at `time.sleep(0)`
fix: `        time.sleep(0)` -> ``
"""

import time

import torch

weights = [torch.randn(4, 4) for _ in range(3)]


def model(x):
    for weight in weights:
        x = (x @ weight).relu()
        time.sleep(0)
    return x


example_inputs = (torch.randn(3, 4),)
