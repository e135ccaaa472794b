"""Padding is applied only if anything is padded.

gb: Data-dependent branching
cause: break at `if not mask.all():`
fix: `    if not mask.all():` -> ``
fix: `        scores = scores.masked_fill(~mask, -1e9)`
    -> `    scores = scores.masked_fill(~mask, -1e9)`
"""

import torch


def model(q, k, mask):
    scores = q @ k.transpose(-1, -2)
    if not mask.all():
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1)


full = torch.ones(5, 5, dtype=torch.bool)
example_inputs = [
    (torch.randn(5, 8), torch.randn(5, 8), full),
    (torch.randn(5, 8), torch.randn(5, 8), full.tril()),
]
