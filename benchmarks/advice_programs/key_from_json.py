"""A cache key by json.

gb: Unsupported method call
cause: break at `key = json.dumps({"rows": x.shape[0]})`
fix: none: what makes the key moves out of forward
"""

import json

import torch

seen = []


def model(x):
    x = x + 1
    key = json.dumps({"rows": x.shape[0]})
    seen.append(key)
    return x * 2


example_inputs = (torch.randn(4, 3),)
