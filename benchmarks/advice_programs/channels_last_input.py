"""Pictures that come in two memory formats.

cause: recompile at `return self.conv(x).relu()`
fix: before x = x.contiguous()
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x).relu()


model = Net()
example_inputs = [
    (torch.randn(2, 3, 8, 8),),
    (torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),),
]
