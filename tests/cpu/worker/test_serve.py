"""`tcw serve model.py`: the compile waits in a page, and ctrl-c leaves no worker behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.no_torch.cli.served import gone, served

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")


async def test_a_compile_waits_in_the_page(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(
        "import torch\ndef model(x):\n    return x.sin()\nexample_inputs = (torch.ones(4),)\n"
    )
    with served(str(model), "--engine", "tcw", cache=tmp_path / "cache") as server:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            (await session.get(server.address)).close()
            async with session.ws_connect(f"{server.site}ws?width=100&height=30") as page:
                seen = b""
                while b"before the first step" not in seen:
                    seen += await page.receive_bytes(timeout=120)
                everyone = server.family()
                assert len(everyone) > 2, "the server, the workbench and its worker"
                assert server.interrupt() == 0
                assert gone(everyone)
