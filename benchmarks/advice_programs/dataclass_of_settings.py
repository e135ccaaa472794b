"""A dataclass carries a number that changes.

cause: recompile at `return x * options.gain + options.shift`
fix: none: the caller makes the numbers tensors
"""

import dataclasses

import torch


@dataclasses.dataclass
class Options:
    gain: float
    shift: int


def model(x, options):
    return x * options.gain + options.shift


example_inputs = [(torch.ones(4), Options(1.0 + n, n + 2)) for n in range(4)]
