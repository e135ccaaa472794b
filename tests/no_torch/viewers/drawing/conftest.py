"""The views of the panes' tests."""

from tests.no_torch.viewers.panes.conftest import block, block_records

__all__ = ["block", "block_records"]
