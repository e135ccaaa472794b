"""Which parts of a picture are folded: keys in a view's `unfolded`, which other panes use too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

FoldOf = Literal["all", "group", "inputs", "module"]


class DrawnFold(str):
    """The key under which a part of a picture is opened."""

    graph: str
    of: FoldOf

    def __new__(cls, graph: str, of: FoldOf, name: str = "") -> DrawnFold:
        made = super().__new__(cls, f"{graph}:draw:{of}:{name}")
        made.graph, made.of = graph, of
        return made


def drawn_folds(unfolded: Iterable[str]) -> frozenset[DrawnFold]:
    """The unfolded keys that belong to pictures."""
    return frozenset(key for key in unfolded if isinstance(key, DrawnFold))
