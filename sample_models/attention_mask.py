"""An attention mask that eager drops and capture cannot: the fused attention is lost.

`reach` says which positions each head may attend to. The library code checks whether it hides
anything and drops it if not. Under capture it cannot look at the data, so the mask stays; and since
it has three dimensions, one for the heads, the fused attention on the CPU does not accept it. Look
for: `tcw profile` names the attention's line, the two products and the softmax that replace one
call, and the mask that exists only under capture.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedAttention(nn.Module):
    def __init__(self, width=256, heads=8):
        super().__init__()
        self.heads = heads
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, reach):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if not torch.compiler.is_compiling() and bool(reach.all()):
            mask = None
        else:
            mask = torch.zeros_like(reach, dtype=x.dtype).masked_fill(~reach, float("-inf"))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.project(mixed.transpose(1, 2).reshape(batch, time, width))


torch.manual_seed(0)
model = MaskedAttention().eval()
example_inputs = (torch.randn(2, 512, 256), torch.ones(8, 512, 512, dtype=torch.bool))
