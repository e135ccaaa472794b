"""What has to live across a graph break: the arguments of the resume function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcw.compiler.capture import variables
from tcw.compiler.capture.traced import outwards
from tcw.compiler.trace.records import Crossing


def crossings(tx: Any, condition: Any | None) -> tuple[Crossing, ...]:
    """The values that cross a break, read from its translator while the instruction is current.

    These are the stack entries below the instruction's own operands, then the locals that the code
    after it reads (torch's own liveness analysis, as in `create_resume`). `condition` is the tensor
    that a jump depends on: it is copied to the host, which waits for it.
    """
    from torch._dynamo.bytecode_analysis import livevars_analysis

    found: list[Crossing] = []
    for frame in outwards(tx):
        # torch may break inside an inlined function, so its callers resume as well
        targets = [frame.next_instruction]
        if frame is tx and condition is not None and tx.current_instruction.target is not None:
            targets.append(tx.current_instruction.target)
        live: set[str] = set()
        for target in targets:
            live |= livevars_analysis(frame.instructions, target)
        found += _values(frame, live)
    if condition is not None:
        name = variables.node(condition) or "condition"
        found.append(variables.crossing(name, condition, "condition"))
    return tuple(found)


def _values(tx: Any, live: set[str]) -> Iterator[Crossing]:
    below = [variable for variable in tx.stack if variables.kind(variable) != "Null"]
    for position, variable in enumerate(below):
        name = variables.node(variable) or f"stack[{position}]"
        yield variables.crossing(name, variable)
    cells = {*tx.cellvars(), *tx.freevars()}
    for name, variable in tx.symbolic_locals.items():
        if name in live and name not in cells and variables.kind(variable) != "Null":
            yield variables.crossing(name, variable)
