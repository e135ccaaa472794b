"""Identifiers of the generated C++: readable, and identical for equal nests of different layers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compiler.codegen.cpp.vocabulary import NAMES
from compiler.loops.operators import OPERATORS

_NUMBERED = re.compile(r"(_?\d+)+_*$")
_ODD = re.compile(r"\W+")

WORDS = """\
alignas and asm auto bool bitand bitor break case catch char class compl concept const continue
default delete do double else enum explicit export extern false float for friend goto if inline
int long mutable namespace new not operator or private protected public register requires
return short signed sizeof static struct switch template this throw true try typedef typename
union unsigned using virtual void volatile while xor

block unit_begin unit_end step count i k lane wrapped checked wrapped_checked out_of_range code
Part Task parallel on_each_thread threads turn wait_for_turn end_turn
PartInTurn TaskInTurn parallel_in_turn on_each_thread_in_turn
"""

RESERVED = frozenset(WORDS.split()) | frozenset(OPERATORS) | NAMES
"""C++ keywords and the names of functions in the prelude, which variables must not shadow."""


class Names:
    """One function's identifiers, each unique."""

    def __init__(self) -> None:
        self.given: list[str] = []
        """In the order in which they were given, to compare bodies up to renaming."""
        self._taken: set[str] = set(RESERVED)

    def new(self, wanted: str) -> str:
        """An unused identifier close to `wanted`, without its number: `exp_7` gives `exp_0`."""
        base = base_name(wanted)
        return self.exactly(f"{base}_0" if base in RESERVED else base)

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


def anonymous(body: str, names: list[str]) -> str:
    """A body without comments and with numbered names: equal for nests of equal structure."""
    number = {name: f"v{place}" for place, name in enumerate(dict.fromkeys(names))}
    bare = re.sub(r"^\s*//.*\n|\s+// .*$", "", body, flags=re.MULTILINE)
    return re.sub(r"[A-Za-z_]\w*", lambda found: number.get(found[0], found[0]), bare)
