"""Traces that a stranger made, to have the reader's machine run something."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    End,
    Run,
    Settings,
    Source,
    Start,
    Waiting,
)
from tests.no_torch.tui.driven import FUSE, head, settings_of

RUNS = "__import__('os').system('touch ran')"


def stranger(recorded: str, **asked: object) -> list[AnyRecord]:
    """A finished run that carries the block's source as the text of the file `recorded`, and asks
    for `asked`: the file, the model, …"""
    settings: Settings = settings_of(**{"file": recorded, **asked})
    records: list[AnyRecord] = []
    for one in head()[:-1]:
        if isinstance(one, Start | Run):
            one = structs.replace(one, settings=settings)
        if isinstance(one, Source):
            one = structs.replace(one, file=recorded)
        records.append(one)
    decided = Decided(
        id=FUSE, graph="0/0/forward", kind="fuse", default="fuse", choice="fuse",
        choices=("fuse", "apart"),
    )  # fmt: skip
    over = Waiting(number=2, kind="end", why="", stage="run")
    return [*records, decided, over, End(status="ok", seconds=1.0)]


def unlike_files(folder: Path) -> list[str]:
    """What a trace may name as its file, and nothing should read."""
    return [
        "", ".", "..", str(folder), "/dev/zero", "/dev/stdin", "a\0b.py", "x" * 5000,
        "/nowhere/m.py", "~/model.py", "\x1b[2J.py",
    ]  # fmt: skip
