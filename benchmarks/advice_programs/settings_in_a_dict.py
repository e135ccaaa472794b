"""A dictionary of settings is changed between uses.

cause: recompile at `x = x * settings["gain"]`
cause: recompile at `settings["gain"] += 0.5`
fix: `settings = {"gain": 1.0}` -> `settings = {"gain": torch.tensor(1.0)}`
fix: `    settings["gain"] += 0.5` -> `    settings["gain"] = settings["gain"] + 0.5`
"""

import torch

settings = {"gain": 1.0}


def model(x):
    x = x * settings["gain"]
    settings["gain"] += 0.5
    return x.relu()


example_inputs = [(torch.ones(4),)] * 4
