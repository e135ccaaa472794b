"""Values are clamped only where one is large.

gb: Data-dependent branching
cause: break at `if h.abs().max() > 8:`
fix: `    if h.abs().max() > 8:` -> ``
fix: `        h = h.clamp(-8, 8)` -> `    h = h.clamp(-8, 8)`
"""

import torch


def model(x):
    h = x * 3
    if h.abs().max() > 8:
        h = h.clamp(-8, 8)
    return h.relu() + 1


example_inputs = [(torch.ones(4, 4),), (torch.full((4, 4), 5.0),)]
