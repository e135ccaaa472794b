"""A process group of this process alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist

_GROUPS: list[object] = []
"""Kept for good: the last reference to a gloo group joins its threads with the GIL held, and one of
them may be waiting for it to let go of what it sent."""


@contextmanager
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    _GROUPS.append(dist.group.WORLD)
    try:
        yield
    finally:
        dist.destroy_process_group()
