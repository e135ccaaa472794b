"""The files that docs/notes/ways.md names are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_room_exists() -> None:
    text = (ROOT / "docs" / "notes" / "ways.md").read_text(encoding="utf-8")
    named = re.findall(r"[a-z_]+(?:/[a-z_]+)+\.py", text)
    assert len(named) > 25
    assert [name for name in named if not (ROOT / name).is_file()] == []
