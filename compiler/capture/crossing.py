"""What has to live across a graph break: the arguments of the resume function."""

from __future__ import annotations

from typing import Any

from compiler.capture import variables
from compiler.trace.records import Crossing


def crossings(tx: Any, jumps: bool) -> tuple[Crossing, ...]:
    """Read off the translator in which Dynamo breaks, while the broken instruction is current.

    Stack entries below the instruction's own operands, then locals that the code after it reads
    (torch's own liveness analysis, as in `create_resume`). For a jump on a tensor also the
    condition, which the host waits for.
    """
    from torch._dynamo.bytecode_analysis import livevars_analysis

    targets = [tx.next_instruction]
    if jumps and tx.current_instruction.target is not None:
        targets.append(tx.current_instruction.target)
    live: set[str] = set()
    for target in targets:
        live |= livevars_analysis(tx.instructions, target)

    found: list[Crossing] = []
    for position, variable in enumerate(tx.stack):
        if variables.kind(variable) != "Null":
            name = variables.node(variable) or f"stack[{position}]"
            found.append(variables.crossing(name, variable))
    cells = {*tx.cellvars(), *tx.freevars()}
    for name, variable in tx.symbolic_locals.items():
        if name in live and name not in cells and variables.kind(variable) != "Null":
            found.append(variables.crossing(name, variable))
    return tuple(found)
