"""The last states are kept in a deque of the module.

cause: recompile at `self.recent.append(h)`
cause: recompile at `return sum(self.recent)`
fix: none: another container is another program
"""

import collections

import torch


class Recent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.recent = collections.deque([torch.zeros(2, 3)] * 2, maxlen=2)

    def forward(self, x):
        h = self.layer(x).detach()
        self.recent.append(h)
        return sum(self.recent)


model = Recent()
example_inputs = [(torch.ones(2, 3),), (torch.randn(2, 3),)]
