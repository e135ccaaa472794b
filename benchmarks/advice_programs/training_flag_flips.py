"""Training and evaluation in turn.

cause: recompile at `return self.drop(self.layer(x))`
fix: none: the two modes are two graphs
"""

import torch


class Alternating(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.layer(x))


net = Alternating()
compiled = torch.compile(net)
results = []
for training in (True, False, True, False):
    net.train(training)
    results.append(compiled(torch.ones(2, 4)).detach())
