"""An attention mask that eager drops and capture cannot: the fused attention is lost.

The library code looks whether the mask hides anything and drops it where it does not. Under
capture it cannot look at the data, so the mask stays, and the attention that eager runs as one
flash kernel has to read it. Look for: the mask among the inputs of the attention's node, and the
eager time beside the compiled time.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedAttention(nn.Module):
    def __init__(self, width=128, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, keep):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if not torch.compiler.is_compiling() and bool(keep.all()):
            mask = None
        else:
            mask = keep[:, None, None, :].expand(batch, 1, time, time)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.project(mixed.transpose(1, 2).reshape(batch, time, width))


torch.manual_seed(0)
model = MaskedAttention().eval()
example_inputs = (torch.randn(4, 256, 128), torch.ones(4, 256, dtype=torch.bool))
