"""Cache keys, decomposed: what changed since the nearest key that was looked up before.

torch hashes a key from components and prints them as `[hash] name: text`
(`FxGraphCachePickler.debug_lines` in torch/_inductor/codecache.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"^\[(?P<hash>\S+)\] (?P<name>[^:\n]+): (?P<text>.*)", re.DOTALL)
_KEPT = 2000
_SHOWN = 6
_WIDTH = 120


@dataclass(frozen=True)
class Key:
    """A key that was looked up."""

    graph: str
    components: dict[str, tuple[str, str]]
    """Name -> (hash, the start of its text)."""


def read_key(graph: str, lines: Iterable[str]) -> Key:
    """The components that torch printed; lines of another form are skipped."""
    components = {}
    for line in lines:
        match = _LINE.match(line)
        if match:
            components[match["name"]] = (match["hash"], match["text"][:_KEPT])
    return Key(graph, components)


def nearest(key: Key, known: Iterable[Key]) -> Key | None:
    """The known key with the most components in common; on a tie, the latest."""
    best, most = None, 0
    for other in known:
        common = sum(
            other.components.get(name, ("",))[0] == value[0]
            for name, value in key.components.items()
        )
        if common >= most and common:
            best, most = other, common
    return best


def changes(old: Key, new: Key) -> list[str]:
    """The differences, component by component, as text."""
    found = []
    for name in dict.fromkeys((*new.components, *old.components)):
        before, after = old.components.get(name), new.components.get(name)
        if before is None:
            found.append(f"{name} is new")
        elif after is None:
            found.append(f"{name} is gone")
        elif before[0] != after[0]:
            found.append(f"{name}: {difference(before[1], after[1])}")
    return found


def difference(before: str, after: str) -> str:
    """`shape=[8] → shape=[9]`: the differing parts of two texts, if they have parts."""
    old, new = _parts(before), _parts(after)
    if len(old) == len(new) > 1:
        pairs = [f"{a} → {b}" for a, b in zip(old, new, strict=True) if a != b]
        if pairs:
            return "; ".join(_cut(pair) for pair in pairs[:_SHOWN])
    if before == after:
        return "differs (in parts that torch does not print)"
    if len(before) + len(after) > 2 * _WIDTH:
        return "differs"
    return f"{before} → {after}"


def missed(key: Key, known: Iterable[Key]) -> str:
    """Why a key was not found, as far as known."""
    other = nearest(key, known)
    if other is None:
        return "no entry with this key"
    found = changes(other, key)
    if not found:
        return "no entry with this key; an equal key was looked up before"
    shown = "; ".join(found[:_SHOWN])
    more = f"; {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    whose = f"the key of {other.graph}" if other.graph else "the nearest key before"
    return f"no entry with this key; against {whose}: {shown}{more}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _parts(text: str) -> list[str]:
    """`A(x=1, y=[2, 3])` -> [`x=1`, `y=[2, 3]`]: split at commas outside inner brackets."""
    start, end = text.find("("), text.rfind(")")
    if start < 0 or end < start:
        return [text]
    found, depth, part = [], 0, ""
    for character in text[start + 1 : end]:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            found.append(part.strip())
            part = ""
        else:
            part += character
    return [*found, part.strip()]
