"""The screen in ASCII."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

from tcw.viewers.plain import GLYPHS, plain
from tcw.workbench.tui.app import Ascii, Workbench, needed
from tcw.workbench.tui.hints import GOES
from tests.no_torch.tui.conftest import Reader

BLACK = Color(0, 0, 0)


@pytest.mark.parametrize(
    ("encoding", "terminal", "wanted"),
    [
        ("utf-8", "xterm-256color", False),
        ("UTF-8", "linux", True),
        ("ascii", "xterm", True),
        ("iso-8859-1", "xterm", True),
        ("no-such", "xterm", True),
    ],
)
def test_when_it_is_needed(encoding: str, terminal: str, wanted: bool) -> None:
    assert needed(encoding, terminal) == wanted


def test_a_glyph_takes_one_cell_as_what_stands_for_it() -> None:
    for glyph, instead in GLYPHS.items():
        assert cell_len(glyph) == cell_len(instead) == len(instead) == 1
        assert instead.isascii()


@given(st.text(), st.sampled_from(["ascii", "latin-1", "utf-8"]))
def test_nothing_moves(text: str, encoding: str) -> None:
    words = plain(text)
    shown = "".join(s.text for s in Ascii(encoding).apply([Segment(words)], BLACK))
    shown.encode(encoding)
    assert sum(map(cell_len, shown)) == sum(map(cell_len, words))


async def test_every_screen_is_ascii(
    block_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    app = Workbench(block_file, ascii_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        reader = Reader(app, pilot)
        await reader.until(lambda: reader.bench.state != "opening")
        for name, _ in GOES:
            reader.bench.navigator.go(name, reader.focus())
            await reader.bench.rebuild()
            await pilot.pause()
            assert "".join(reader.lines()).isascii(), name
            if name == "overview":
                assert " Enter open " in reader.lines()[-1]
            elif name == "settings":
                assert " Enter compile again so " in reader.lines()[-1]
                assert any("Enter others" in line for line in reader.lines())
            assert reader.cells() == [120] * 40


async def test_help_spells_the_key(block_file: Path) -> None:
    app = Workbench(block_file, ascii_only=True)
    async with app.run_test(size=(100, 40)) as pilot:
        reader = Reader(app, pilot)
        await reader.until(lambda: reader.bench.state != "opening")
        await pilot.press("question_mark")
        await pilot.pause()
        assert any("Enter  esc one level in, out" in line for line in reader.lines())
