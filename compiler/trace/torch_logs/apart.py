"""Where many logs of one program diverge, by the first steps of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tcw.compiler.trace.torch_logs.alike import STEP, Glance


@dataclass(frozen=True)
class Parted:
    """A log, and the first of its compiles in which it differs from the usual one."""

    file: Path
    compile: int | None
    """Counted from 1 in the order of the log; None for the usual log, and for one that says the
    same."""


def parted(logs: Mapping[Path, Glance]) -> list[Parted]:
    """The usual log, then the others: those that part from it earlier come first.

    At each step the usual log does what most of those do that have been usual so far; of equally
    many, what the first in order does.
    """
    usual = list(logs)
    at = 0
    while len(usual) > 1:
        steps = {file: logs[file].steps[at : at + STEP] for file in usual}
        if not any(steps.values()):
            break
        most = Counter(steps.values()).most_common(1)[0][0]
        usual = [file for file in usual if steps[file] == most]
        at += STEP
    if not usual:
        return []
    first = logs[usual[0]]
    found = []
    for place, (file, glance) in enumerate(logs.items()):
        step = _differs(first.steps, glance.steps)
        if file != usual[0]:
            number = None if step is None else max(1, glance.compiles_until(step + 1))
            found.append((len(first.steps) if step is None else step, place, Parted(file, number)))
    return [Parted(usual[0], None), *(one for _, _, one in sorted(found, key=lambda one: one[:2]))]


def _differs(one: bytes, other: bytes) -> int | None:
    """The first step in which two logs differ; None if they do not."""
    if one == other:
        return None
    low, high = 0, min(len(one), len(other)) // STEP
    while low < high:
        middle = (low + high + 1) // 2
        if one[: middle * STEP] == other[: middle * STEP]:
            low = middle
        else:
            high = middle - 1
    return low
