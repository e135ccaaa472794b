"""`tcw serve model.py`: the compile waits in a page, and its worker ends with the server."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.no_torch.cli.served import gone, served

pytest.importorskip("textual_serve")

import aiohttp


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_a_compile_waits_in_the_page(how: signal.Signals, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(
        "import torch\ndef model(x):\n    return x.sin()\nexample_inputs = (torch.ones(4),)\n"
    )
    with served(str(model), "--engine", "tcw", cache=tmp_path / "cache") as server:
        async with aiohttp.ClientSession() as session, await server.workbench(session) as page:
            seen = b""
            while b"before the first step" not in seen:
                seen += await page.receive_bytes(timeout=120)
            everyone = server.family()
            assert len(everyone) > 2, "the server, the workbench and its worker"
            server.process.send_signal(how)
            assert gone(everyone)
