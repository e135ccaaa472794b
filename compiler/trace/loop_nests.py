"""The outermost loops of Inductor's C++: where each nest of a kernel begins and ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LOOP = re.compile(r"\s*for\s*\(")
_HELPER = re.compile(r"\s*for\s*\(\s*int \w+ = 0;")
"""A loop over accumulators, one per thread or lane: not a nest."""

COSTLY = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "digamma", "erf",
    "erfc", "erfinv", "exp", "exp2", "expm1", "lgamma", "log", "log10", "log1p", "log2", "pow",
    "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
})  # fmt: skip
"""Operations of loop bodies that take many instructions for an element, named as in ATen."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """Lines count from 1."""

    first: int
    """The line of its pragma, else of its loop."""
    line: int
    """The line of its outermost `for`."""
    last: int
    """The line where its body ends."""
    shared: bool
    """Whether all threads of a team reach it."""


def outermost_loops(text: str) -> tuple[LoopNest, ...]:
    """The nests of a kernel, in order; inner loops belong to their nest.

    Expects the style of torch's generator: one statement per line, bodies in braces.
    """
    lines = text.splitlines()
    nests: list[LoopNest] = []
    blocks: list[str] = []
    header = ""
    start: tuple[int, int, int] | None = None
    opened = False
    for number, line in enumerate(lines, start=1):
        words = line.partition("//")[0].strip()
        if not words:
            continue
        if start is None and _LOOP.match(line) and not _HELPER.match(line):
            start = (number - 1 if header.startswith("#pragma") else number, number, len(blocks))
            opened = False
        for mark in re.findall(r"[{}]", words):
            if mark == "{":
                blocks.append(header if words == "{" else words)
                opened = True
            elif blocks:
                blocks.pop()
        if start is not None and len(blocks) <= start[2] and (opened or words.endswith(";")):
            shared = _shared(blocks)
            nests.append(LoopNest(start[0], start[1], number, shared))
            start = None
        header = words
    return tuple(nests)


def loop_lines(text: str) -> tuple[int, ...]:
    """The line of each outermost loop (`Kernel.loops`)."""
    return tuple(nest.line for nest in outermost_loops(text))


def _shared(blocks: list[str]) -> bool:
    """Whether a whole team of threads runs these blocks, not just one thread."""
    inside = [place for place, block in enumerate(blocks) if "omp parallel" in block]
    return bool(inside) and not any("omp single" in block for block in blocks[inside[-1] :])
