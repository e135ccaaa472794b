"""A deadline is checked in forward.

gb: Attempted to call function marked as skipped
cause: break at `if time.monotonic() > self.deadline:`
fix: `        if time.monotonic() > self.deadline:` -> ``
fix: `            raise TimeoutError("too late")` -> ``
"""

import time

import torch


class Timed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.deadline = float("inf")

    def forward(self, x):
        x = x + 1
        if time.monotonic() > self.deadline:
            raise TimeoutError("too late")
        return self.layer(x).relu()


model = Timed()
example_inputs = (torch.randn(3, 4),)
