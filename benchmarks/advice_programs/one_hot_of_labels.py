"""Labels as one-hot rows, without the number of classes.

gb: Attempted to use `torch.nn.functional.one_hot` with data-dependent output shape
cause: break at `target = torch.nn.functional.one_hot(labels)`
fix: `    target = torch.nn.functional.one_hot(labels)`
    -> `    target = torch.nn.functional.one_hot(labels, logits.shape[1])`
"""

import torch


def model(logits, labels):
    target = torch.nn.functional.one_hot(labels)
    return (logits.log_softmax(-1) * target).sum(-1).mean()


example_inputs = (torch.randn(4, 3), torch.tensor([0, 2, 1, 2]))
