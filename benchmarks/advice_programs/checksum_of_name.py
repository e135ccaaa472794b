"""A C function that torch cannot trace.

gb: Attempted to call function marked as skipped
cause: break at `slot = zlib.crc32(b"encoder") % 4`
fix: `    slot = zlib.crc32(b"encoder") % 4` -> `    slot = SLOT`
fix: `SLOT = None` -> `SLOT = zlib.crc32(b"encoder") % 4`
"""

import zlib

import torch

SLOT = None


def model(x):
    x = x + 1
    slot = zlib.crc32(b"encoder") % 4
    return x[slot] * 2


example_inputs = (torch.randn(4, 3),)
