"""What the workbench remembers of a model's file, in our cache folder: panes and breakpoints."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from tcw.compiler.cache_folder import (
    CacheRefused,
    cache_folder,
    private_folder,
    read_own,
    write_own,
)
from tcw.compiler.control.commands import Breakpoint
from tcw.viewers.panes.arrangement import ARRANGEMENTS, PANES, Arrangement, Column, Slot

MOST_BYTES = 1 << 20
"""A larger file is not ours."""


class PaneShares(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An arrangement: (pane, share, lines) of each, by column."""

    columns: list[list[tuple[str, int, int]]]
    shares: list[int] = []
    top: tuple[str, int, int] | None = None

    @classmethod
    def of(cls, arrangement: Arrangement) -> PaneShares:
        top = arrangement.top
        return cls(
            columns=[[(s.pane, s.share, s.lines) for s in c.slots] for c in arrangement.columns],
            shares=[column.share for column in arrangement.columns],
            top=(top.pane, top.share, top.lines) if top is not None else None,
        )

    def known(self) -> bool:
        """Whether this version has all of its panes."""
        slots = [slot for column in self.columns for slot in column]
        slots += [self.top] if self.top is not None else []
        return bool(slots) and all(self.columns) and all(pane in PANES for pane, _, _ in slots)

    def arrangement(self) -> Arrangement:
        shares = self.shares if len(self.shares) == len(self.columns) else [1] * len(self.columns)
        columns = tuple(
            Column(tuple(Slot(*slot) for slot in slots), max(1, share))
            for slots, share in zip(self.columns, shares, strict=True)
        )
        slots = tuple(slot for column in columns for slot in column.slots)
        top = Slot(*self.top) if self.top is not None else None
        return Arrangement(columns, top, narrow=slots[:2], focus=slots[0].pane)


class Remembered(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The JSON file; fields that this version does not know are ignored."""

    theme: str = ""
    turned: bool = False
    own: dict[str, PaneShares] = {}
    """Arrangement -> the reader's version."""
    shares: dict[str, list[float]] = {}
    """Arrangement -> shares of the width, by column."""
    prefer: dict[str, str] = {}
    """Kind of place where the compile waits -> arrangement."""
    breakpoints: tuple[Breakpoint, ...] = ()


def recall(model: str) -> tuple[Remembered, str]:
    """What is remembered of a model's file; if that is unusable, an empty one and the reason."""
    try:
        file = _file(model)
        return _checked(msgspec.json.decode(read_own(file, MOST_BYTES), type=Remembered)), ""
    except FileNotFoundError:
        return Remembered(), ""
    except OSError as error:
        return Remembered(), f"{error.filename}: {error.strerror}"
    except (CacheRefused, msgspec.DecodeError) as error:
        words = str(error) if isinstance(error, CacheRefused) else f"{file} is damaged"
        return Remembered(), words


def remember(model: str, state: Remembered) -> None:
    """Write the file as a whole or not at all; errors are ignored."""
    with contextlib.suppress(OSError, CacheRefused):
        write_own(_file(model), msgspec.json.encode(state))


def _file(model: str) -> Path:
    folder = private_folder(cache_folder() / "workbench")
    name = hashlib.sha256(os.fsencode(os.path.abspath(model))).hexdigest()[:32]
    return folder / f"{name}.json"


def _checked(found: Remembered) -> Remembered:
    """Drop panes and arrangements that this version lacks."""
    own = found.own.items()
    found.own = {name: one for name, one in own if name in ARRANGEMENTS and one.known()}
    found.prefer = {kind: name for kind, name in found.prefer.items() if name in ARRANGEMENTS}
    found.shares = {
        name: shares
        for name, shares in found.shares.items()
        if all(0.01 < share < 10_000 for share in shares)
    }
    return found
