"""Every text of a trace means harm: nothing breaks, nothing runs, nothing leaves its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.viewers.panes.arrangement import ARRANGEMENTS
from tcw.workbench.tui.app import Workbench
from tests.no_torch.every_record import every_record
from tests.no_torch.hostile import How, hostile
from tests.no_torch.tui.conftest import Open, Reader, encoded

SIZES: dict[How, list[tuple[int, int]]] = {
    "added": [(80, 24)],
    "replaced": [(120, 40)],
    "long": [(80, 24)],
}


def whole(reader: Reader, where: str) -> None:
    """Each line is as wide as the screen, and only prints."""
    width, height = reader.app.size
    lines = reader.lines()
    assert "".join(lines).isprintable(), where
    assert reader.cells() == [width] * height, where
    assert reader.app.is_running


@pytest.mark.parametrize("how", ["added", "replaced", pytest.param("long", marks=pytest.mark.long)])
async def test_every_text_of_every_record(how: How, open_trace: Open, tmp_path: Path) -> None:
    path = tmp_path / "hostile.tcw"
    path.write_bytes(encoded(hostile(every_record(), how)))
    async with open_trace(path, (80, 24)) as reader:
        assert isinstance(reader.app, Workbench)
        for size in SIZES[how]:
            await reader.pilot.resize_terminal(*size)
            for name in ARRANGEMENTS:
                reader.bench.navigator.go(name, reader.focus())
                await reader.bench.rebuild()
                await reader.pilot.press("j", "tab", "j", "l", "end" if size[0] < 100 else "G")
                whole(reader, f"{name} at {size}")
        for keys in (
            ("question_mark",), ("escape", "colon", "n"), ("escape", "m"), ("escape",),
            ("less_than_sign",), ("left_curly_bracket",), ("greater_than_sign",), ("end",),
            ("T",), ("p",), ("p",), ("enter",), ("escape",), ("slash", "n", "enter"), ("y",),
        ):  # fmt: skip
            await reader.press(*keys)
            whole(reader, " ".join(keys))
        reader.svg()
