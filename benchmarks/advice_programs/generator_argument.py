"""A generator says when it is done.

gb: Failed to trace builtin operator
cause: break at `print("done")`
cause: eager at `print("done")`
fix: `        print("done")` -> `        pass`
"""

import contextlib

import torch


def parts(x):
    try:
        yield from x.chunk(2)
    finally:
        print("done")


def model(x):
    x = x * 2
    out = []
    for part in parts(x):
        out.append(part.softmax(-1))
    return torch.cat(out) * len(contextlib.__name__)


example_inputs = (torch.randn(4, 3),)
