"""A pre-hook notes the norm of what comes in.

gb: Unsupported Tensor.item() call with capture_scalar_outputs=False
cause: break at `norms.append(inputs[0].norm().item())`
fix: set torch._dynamo.config.capture_scalar_outputs = True
"""

import torch

norms = []


def note(module, inputs):
    norms.append(inputs[0].norm().item())


model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
model[2].register_forward_pre_hook(note)
example_inputs = (torch.randn(2, 4),)
