from __future__ import annotations

from tests.no_torch.viewers.panes.conftest import block, block_records

__all__ = ["block", "block_records"]
