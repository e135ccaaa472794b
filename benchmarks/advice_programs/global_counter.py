"""A global number is read and raised.

cause: recompile at `STEP += 1`
cause: recompile at `return x + STEP`
fix: `STEP = 0` -> `STEP = torch.tensor(0)`
"""

import torch

STEP = 0


def model(x):
    global STEP
    STEP += 1
    return x + STEP


example_inputs = [(torch.ones(4),)] * 4
