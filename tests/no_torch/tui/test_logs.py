"""A log of torch's in the workbench."""

from __future__ import annotations

from tcw.viewers.words import NOT_IN_LOG
from tests.no_torch.torch_logs.samples import FOLDER
from tests.no_torch.tui.conftest import Open


async def test_a_log_opens_and_says_what_it_does_not_hold(open_trace: Open) -> None:
    async with open_trace(FOLDER / "torch-2.13.log.gz", (120, 40)) as reader:
        assert "Read from a log" in reader.text()
        await reader.go("memory")
        assert NOT_IN_LOG in reader.text()
