"""An `if` that takes one branch in eager and another under capture, as with `is_compiling()`.

One branch did not become the other: one is a loss and the other a win, so both are one finding."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from tcw.compiler.trace.records import CompiledStep, Location
from tcw.viewers.collected import grouped
from tcw.viewers.summary.place import place_of
from tcw.viewers.summary.profile.causes.cause import Cause, cause_of
from tcw.viewers.summary.profile.causes.step_words import named
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.syntax import statements
from tcw.viewers.words import listed, numbers_text, seconds_text


class _Branch(NamedTuple):
    line: int
    """Of the `if`."""
    arms: tuple[range, range]
    """Lines of both; if the first may leave the block, the second includes what follows it."""


def branches(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    known = [row for row in rows if row.known]
    captured = [row for row in known if not row.operations and row.standing == "lost"]
    seen = [row for row in known if not row.steps and row.standing == "won"]
    steps = [(step, index.locations_of(step)) for step in index.steps.values()]
    compiled = grouped((at.file, at.line) for _, places in steps for at in places)
    called = (operation.location for operation in index.operations.values() if operation.location)
    eager = grouped((at.file, at.line) for at in called)
    for file in compiled.keys() & {at.file for row in seen for at in row.locations}:
        for branch in _branches("\n".join(index.recording.source(file))):
            for ours, theirs in (branch.arms, branch.arms[::-1]):
                left = [row for row in seen if _is_in(row.locations, file, theirs)]
                runs = [
                    any(line in arm for line in side.get(file, ()))
                    for side, arm in ((compiled, ours), (eager, ours), (compiled, theirs))
                ]
                if not left or runs != [True, False, False]:
                    continue
                made = [row for row in captured if _is_in(row.locations, file, ours)]
                there = [step for step, places in steps if _is_in(places, file, ours)]
                yield _cause(index, file, branch.line, ours, made, left, there)
                gone = {row.key for row in (*made, *left)}
                captured, seen = (
                    [row for row in side if row.key not in gone] for side in (captured, seen)
                )


def _is_in(places: Iterable[Location], file: str, arm: range) -> bool:
    return any(at.file == file and at.line in arm for at in places)


def _cause(
    index: Index,
    file: str,
    line: int,
    arm: range,
    made: Sequence[RegionRow],
    left: Sequence[RegionRow],
    there: Sequence[CompiledStep],
) -> Cause:
    """`made`: rows that only the compiled code has; empty if kernels of other lines do the work of
    the branch taken, whose steps are `there`."""
    steps = named((step.name for row in made for step in row.steps), 3)
    operations = named(
        (operation.operation for row in left for operation in row.operations if operation.launches),
        3,
    )
    compiled = (
        f"only compiled: {_where(file, made)}, "
        f"{seconds_text(sum(row.difference for row in made))}: {steps}"
    )
    if not made:
        places = (at for step in there for at in index.locations_of(step))
        lines = _lines_text({at.line for at in places if at.file == file and at.line in arm})
        compiled = (
            f"only compiled: {lines}, fused into kernels of other lines, whose time includes it: "
        )
        compiled += named((step.name for step in there), 3)
    labels = [_labels(rows) for rows in (made, left) if rows]
    instead = f": {' instead of '.join(labels)}" if made else f", without {labels[-1]}"
    return cause_of(
        *made,
        *left,
        kind="capture",
        title=f"the `if` takes a different branch under capture{instead}",
        place=place_of(index.recording, Location(file=file, line=line)),
        notes=(
            compiled,
            f"only in eager: {_where(file, left)}, "
            f"{seconds_text(-sum(row.difference for row in left))}: {operations}",
        ),
    )


def _labels(rows: Sequence[RegionRow]) -> str:
    """The slowest one, and how many others there are."""
    return listed([row.label for row in sorted(rows, key=lambda row: -abs(row.difference))], 1)


def _where(file: str, rows: Sequence[RegionRow]) -> str:
    return _lines_text({at.line for row in rows for at in row.locations if at.file == file})


def _lines_text(lines: Collection[int]) -> str:
    found = sorted(lines)
    return f"line {found[0]}" if len(found) == 1 else f"lines {numbers_text(found)}"


@lru_cache(maxsize=64)
def _branches(source: str) -> tuple[_Branch, ...]:
    """Of a file, shortest first, so that the innermost comes before those around it."""
    found = [branch for node in ast.walk(statements(source)) for branch in _of_block(node)]
    return tuple(sorted(found, key=lambda one: one.arms[1].stop - one.line))


def _of_block(node: ast.AST) -> Iterator[_Branch]:
    for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
        if not isinstance(block, list):
            continue
        for one in block:
            if not isinstance(one, ast.If):
                continue
            first = range(one.body[0].lineno, _end(one.body[-1]) + 1)
            start = one.orelse[0].lineno if one.orelse else first.stop
            last = block[-1] if _may_leave(one.body) else one
            second = range(start, _end(last) + 1)
            if second:
                yield _Branch(one.lineno, (first, second))


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _may_leave(block: Sequence[ast.stmt]) -> bool:
    leaves = (ast.Return, ast.Raise, ast.Continue, ast.Break)
    return any(isinstance(inner, leaves) for one in block for inner in ast.walk(one))
