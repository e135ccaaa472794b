"""contextlib.closing in forward.

gb: unsupported contextlib.* API
cause: break at `with contextlib.closing(Source()) as source:`
fix: `    with contextlib.closing(Source()) as source:` -> `    source = Source()`
fix: `        y = x * source.scale` -> `    y = x * source.scale`
"""

import contextlib

import torch


class Source:
    scale = 3.0

    def close(self):
        pass


def model(x):
    x = x.sin()
    with contextlib.closing(Source()) as source:
        y = x * source.scale
    return y + 1


example_inputs = (torch.randn(4, 3),)
