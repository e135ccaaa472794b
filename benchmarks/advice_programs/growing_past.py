"""Keys and values of a decoder grow by one with each call.

cause: recompile at `keys = torch.cat([past, x @ weight], 1)`
fix: compile dynamic=True
"""

import torch

weight = torch.randn(4, 4)


def model(x, past):
    keys = torch.cat([past, x @ weight], 1)
    scores = (x @ keys.transpose(1, 2)).softmax(-1)
    return scores @ keys, keys


example_inputs = [(torch.randn(2, 1, 4), torch.randn(2, length, 4)) for length in (5, 6, 7, 8)]
