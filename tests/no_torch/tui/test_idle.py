"""Waiting for the app: a screen that has not settled is an error, never a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.no_torch.tui.conftest import Open
from tests.no_torch.tui.idle import wait_for_idle


async def test_an_app_that_never_rests_is_an_error(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        reader.app._batch_count += 1
        try:
            with pytest.raises(AssertionError, match="not idle within"):
                await wait_for_idle(0, 0.05)
        finally:
            reader.app._batch_count -= 1
        await wait_for_idle()
