"""Names in generated code: readable, and identical for equal nests of different layers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcw.compiler.loops.nest import Nest

_NUMBERED = re.compile(r"(_?\d+)+_*$")
_ODD = re.compile(r"\W+")


class Names:
    """One function's identifiers, each unique."""

    def __init__(self, reserved: frozenset[str]) -> None:
        """`reserved`: what no identifier may be, such as keywords of the language."""
        self.given: list[str] = []
        """In the order in which they were given, to compare bodies up to renaming."""
        self._reserved = reserved
        self._taken: set[str] = set(reserved)

    def new(self, wanted: str) -> str:
        """An unused identifier close to `wanted`, without its number: `exp_7` gives `exp_0`."""
        base = base_name(wanted)
        return self.exactly(f"{base}_0" if base in self._reserved else base)

    def exactly(self, wanted: str) -> str:
        """`wanted`, with a number if it is taken."""
        name, number = wanted, 1
        stem = wanted.removesuffix("_0")
        while name in self._taken:
            name = f"{stem}_{number}"
            number += 1
        self._taken.add(name)
        self.given.append(name)
        return name

    def family(self, wanted: str, endings: Sequence[str]) -> str:
        """A stem close to `wanted` that is unused with each of these endings; reserves them all."""
        while True:
            stem = self.new(wanted)
            names = [f"{stem}_{ending}" for ending in endings]
            if self._taken.isdisjoint(names):
                self._taken.update(names)
                self.given += names
                return stem


def base_name(wanted: str) -> str:
    """A name without its number: `exp` for exp_7."""
    base = _NUMBERED.sub("", _ODD.sub("_", wanted)).strip("_") or "value"
    return f"value_{base}" if base[0].isdigit() else base


def title_of(nest: Nest) -> str:
    """`softmax: 4096 x [1024]`: the label and the axes, reduced ones in brackets."""
    axes = " x ".join(f"[{a.size}]" if a.reduced else f"{a.size}" for a in nest.axes)
    return f"{printable(nest.label) or 'nest'}: {axes}"


def printable(text: str) -> str:
    """User text as the rest of a comment, in one line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def anonymous(body: str, names: list[str], comment: str = "//") -> str:
    """A body without comments and with numbered names: equal for nests of equal structure."""
    number = {name: f"v{place}" for place, name in enumerate(dict.fromkeys(names))}
    bare = re.sub(rf"^\s*{comment}.*\n|\s+{comment} .*$", "", body, flags=re.MULTILINE)
    # what follows a point is an attribute, such as that of `tl.where`
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda match: number.get(match[0], match[0]), bare)
