"""A guidance scale that changes with each call.

cause: recompile at `return uncond + scale * (cond - uncond)`
fix: compile dynamic=True
"""

import torch


def model(cond, uncond, scale):
    return uncond + scale * (cond - uncond)


example_inputs = [(torch.ones(4), torch.zeros(4), scale) for scale in (7.5, 7.0, 6.5, 6.0)]
