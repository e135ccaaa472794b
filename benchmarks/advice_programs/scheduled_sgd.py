"""A compiled optimizer step under a scheduler.

cause: recompile at `optimizer.step()`
fix: `optimizer = torch.optim.SGD(net.parameters(), lr=0.1)`
    -> `optimizer = torch.optim.SGD(net.parameters(), lr=torch.tensor(0.1))`
"""

import torch

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)


@torch.compile(fullgraph=False)
def step():
    optimizer.step()


for _ in range(5):
    net(torch.ones(2, 4)).pow(2).sum().backward()
    step()
    scheduler.step()
    optimizer.zero_grad()
