"""The mean over what a mask keeps.

gb: Dynamic shape operator
cause: break at `kept = losses[mask]`
fix: set torch._dynamo.config.capture_dynamic_output_shape_ops = True
"""

import torch


def model(logits, labels, mask):
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    kept = losses[mask]
    return kept.sum() / mask.sum()


example_inputs = (torch.randn(6, 4), torch.arange(6) % 4, torch.arange(6) > 1)
