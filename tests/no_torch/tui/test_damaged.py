"""Damaged traces in the app: each arrangement is shown, whatever the records hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.reader import TraceError, read_trace
from tcw.viewers.panes.arrangement import ARRANGEMENTS
from tests.long import mostly_long
from tests.no_torch.fuzz.damage import damaged
from tests.no_torch.tui.conftest import Open
from tests.no_torch.tui.test_hostile import whole


@pytest.mark.parametrize("number", mostly_long((13, 190, 365, 546, 751), (13,)))
async def test_every_arrangement(number: int, open_trace: Open, tmp_path: Path) -> None:
    path = tmp_path / "damaged.tcw"
    made = damaged(number)
    path.write_bytes(made.data)
    try:
        read_trace(path)
    except TraceError:
        pytest.skip("nothing of it can be read")
    async with open_trace(path, (120, 40)) as reader:
        for name in ARRANGEMENTS:
            reader.bench.navigator.go(name, reader.focus())
            await reader.bench.rebuild()
            await reader.pilot.press("j", "tab", "j", "G")
            whole(reader, f"{name}: {made.said}")
        for keys in (("less_than_sign",), ("left_curly_bracket",), ("end",), ("enter",)):
            await reader.press(*keys)
            whole(reader, f"{keys}: {made.said}")
