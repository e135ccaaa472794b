"""A loop as long as an argument says.

cause: recompile at `for _ in range(rounds):`
fix: none: each number of rounds is another graph
"""

import torch


def model(x, rounds):
    for _ in range(rounds):
        x = (x * 1.1).tanh()
    return x


example_inputs = [(torch.ones(4), rounds) for rounds in (2, 3, 4)]
