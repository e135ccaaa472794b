"""A hook counts gradients that are not finite.

cause: eager at `h.register_hook(note)`
cause: break at `if not grad.isfinite().all():`
fix: none: the hook decides on data
train: yes
"""

import torch


def note(grad):
    if not grad.isfinite().all():
        return torch.zeros_like(grad)
    return grad * 0.5


class Guarded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.one(x)
        h.register_hook(note)
        return self.two(h).relu()


model = Guarded()
example_inputs = (torch.randn(3, 4),)
