"""One layer of several, by its number.

cause: recompile at `return self.heads[task](x)`
fix: none: each number is another graph
"""

import torch


class Tasks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = torch.nn.ModuleList(torch.nn.Linear(4, 2) for _ in range(3))

    def forward(self, x, task):
        return self.heads[task](x)


model = Tasks()
example_inputs = [(torch.ones(2, 4), task) for task in range(3)]
