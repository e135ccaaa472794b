"""Candidates are sorted by their scores.

gb: sort with non-constant keys
cause: break at `parts.sort(key=lambda part: part.sum())`
fix: `    parts.sort(key=lambda part: part.sum())`
    -> `    parts = torch.stack(parts); parts = parts[parts.sum(1).argsort()]`
fix: `    return torch.cat(parts)` -> `    return parts.flatten()`
"""

import torch


def model(x):
    parts = [x, x * 2, x * 0.5]
    parts.sort(key=lambda part: part.sum())
    return torch.cat(parts)


example_inputs = [(torch.ones(4),), (-torch.ones(4),)]
