"""A nest's label in words, from the ATen operations that it computes."""

from __future__ import annotations

import re

from compiler.loops.graph import Compute

_COUNTER = re.compile(r"(_\d+)+$")
LIMIT = 4


def label(members: list[Compute]) -> str:
    """`mul + sum`: each operation once, in order."""
    words: dict[str, None] = {}
    for member in members:
        for origin in member.origins or (member.name,):
            words[_COUNTER.sub("", origin).strip("_").replace("_", " ")] = None
    shown = list(words)
    more = [f"{len(shown) - LIMIT} more"] if len(shown) > LIMIT + 1 else []
    return " + ".join([*(shown[:LIMIT] if more else shown), *more])
