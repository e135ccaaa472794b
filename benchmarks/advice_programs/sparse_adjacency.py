"""A graph's adjacency becomes sparse inside.

gb: Attempted to wrap sparse Tensor
cause: break at `sparse = adjacency.to_sparse()`
fix: `    sparse = adjacency.to_sparse()` -> ``
fix: `    return torch.sparse.mm(sparse, x).relu()` -> `    return (adjacency @ x).relu()`
"""

import torch


def model(adjacency, x):
    x = x * 2
    sparse = adjacency.to_sparse()
    return torch.sparse.mm(sparse, x).relu()


example_inputs = (torch.eye(5), torch.randn(5, 3))
