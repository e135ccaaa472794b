"""A graph break in the middle of a chain that would be one kernel.

The chain would write to memory only at its end. At the `print`, the intermediate values have to be
written, and read again by the second graph. Look for: `tcw profile` names the line, the tensors
that cross and their bytes; without the `print`, one kernel does it all.
"""

import torch
import torch.nn.functional as F


def model(x, y):
    a = torch.sigmoid(x) * y + 1.0
    b = F.relu(a) - x * 0.5
    print("half of the chain")
    c = torch.tanh(b) * a + y
    return torch.sigmoid(c) * b - x


torch.manual_seed(0)
example_inputs = (torch.randn(1024, 1024), torch.randn(1024, 1024))
