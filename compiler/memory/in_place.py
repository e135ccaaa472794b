"""Whether a nest may write one value over the memory of another that it reads.

Each element must be read for the last time before it is overwritten. A nest runs as one loop over
the row per reduction to complete, and a later loop may recompute a value from memory. So everything
computed from the dying value must be in the loop of the write or an earlier one. In each loop, code
generation updates the reductions before it stores, and stores in the nest's order.
"""

from __future__ import annotations

from tcw.compiler.loops.expressions import Local, Read, ReadIndexed
from tcw.compiler.loops.nest import (
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    expressions,
    runs_over,
)
from tcw.compiler.memory.accesses import Values

Refusal = tuple[str, str]
"""The name of the rule that forbids it, and the reason."""


def refusal(nest: Nest, written: str, read: str, values: Values) -> Refusal | None:
    """Why `written` cannot overwrite `read` in this nest, or None if it can. Computed once for all
    orders of the steps."""
    key = id(nest), written, read
    if key not in values.refusals:
        values.refusals[key] = _refusal(nest, written, read, values)
    return values.refusals[key]


def _refusal(nest: Nest, written: str, read: str, values: Values) -> Refusal | None:
    if values.dtype(written) != values.dtype(read):
        return "dtype", f"{read} is {values.dtype(read)}, {written} {values.dtype(written)}"
    if read in nest.writes():
        return "written", f"{read} is written here as well"
    if any(isinstance(statement, ScanAlong) for statement in nest.statements):
        return "scan", "a scan reads elements that were written before"
    writes = [s for s in nest.statements if isinstance(s, Write) and s.buffer == written]
    write = writes[0]
    if len(writes) > 1 or write.terms or write.mode != "set" or write.ordered:
        return "scattered", f"{written} is written piece by piece or at computed indices"
    if write.address.then or not _covers(nest, write):
        return "addresses", f"{written} is not written once for each position"
    users = _users(nest, read)
    for statement in users:
        for part in expressions(statement):
            if isinstance(part, ReadIndexed) and part.buffer == read:
                return "gathered", f"{read} is read at computed indices"
            if isinstance(part, Read) and part.buffer == read and part.address != write.address:
                return (
                    "addresses",
                    f"{read} is not read at the addresses at which {written} is written",
                )
    return _later_use(nest, write, users, read)


def _covers(nest: Nest, write: Write) -> bool:
    """Whether the write's address varies along each of its axes, except those of size 1."""
    return all(write.address.strides[axis] != 0 or nest.axes[axis].size == 1 for axis in write.axes)


def _users(nest: Nest, read: str) -> list[Statement]:
    """Statements that read the memory, or a value computed from it at the same position."""
    found: list[Statement] = []
    carried: set[str] = set()
    for statement in nest.statements:
        for part in expressions(statement):
            direct = isinstance(part, (Read, ReadIndexed)) and part.buffer == read
            if direct or (isinstance(part, Local) and part.name in carried):
                found.append(statement)
                if isinstance(statement, Let):
                    carried.add(statement.name)
                break
    return found


def _later_use(nest: Nest, write: Write, users: list[Statement], read: str) -> Refusal | None:
    loops = _loops(nest)
    order = {id(statement): place for place, statement in enumerate(nest.statements)}
    for statement in users:
        more = set(runs_over(statement)) - set(write.axes)
        if any(nest.axes[axis].size != 1 for axis in more):
            return "addresses", f"{read} is read more often than {write.buffer} is written"
        stored_later = isinstance(statement, Write) and order[id(statement)] > order[id(write)]
        if loops[id(statement)] > loops[id(write)] or stored_later:
            return "later-loop", f"{read} is needed after {write.buffer} is written"
    return None


def _loops(nest: Nest) -> dict[int, int]:
    """The index of the loop over a row in which each statement is first computed."""
    complete: dict[str, int] = {}
    loops: dict[int, int] = {}
    for statement in nest.statements:
        needed = [complete[p.name] for p in expressions(statement) if isinstance(p, Local)]
        loop = loops[id(statement)] = max(needed, default=0)
        if not isinstance(statement, Write):
            complete[statement.name] = loop + (
                isinstance(statement, Reduction) and bool(statement.over)
            )
    return loops
