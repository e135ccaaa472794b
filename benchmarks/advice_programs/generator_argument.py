"""Chunks come from a generator with a finally.

gb: Attempt to trace generator
cause: break at `for part in parts(x):`
fix: none: the generator has to become a list
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
