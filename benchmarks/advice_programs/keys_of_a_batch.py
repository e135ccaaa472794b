"""A batch that has a label only in training.

cause: recompile at `if "label" in batch:`
fix: none: with and without labels are two graphs
"""

import torch


def model(batch):
    y = batch["x"].relu()
    if "label" in batch:
        return y.sum() + batch["label"]
    return y


example_inputs = [
    ({"batch": {"x": torch.ones(4), "label": torch.tensor(2.0)}}),
    ({"batch": {"x": torch.ones(4)}}),
]
