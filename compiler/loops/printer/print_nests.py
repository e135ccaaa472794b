"""A nest as the loops that it represents.

    nest_0: softmax
        for i < 3:
            for j < 5:
                amax max= x[5*i + j]                                        # amax
            for j < 5:
                exp = exp(x[5*i + j] - amax)                                # sub, exp
                sum_1 += exp                                                # sum_1

Reductions start from their identity. The code generator is free to reorder, split and join the
loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcw.compiler.loops.expressions import Local
from tcw.compiler.loops.nest import (
    Let,
    Nest,
    Program,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    expressions,
    runs_over,
)
from tcw.compiler.loops.printer.print_addresses import (
    STORE_SIGNS,
    address_text,
    axis_name,
    escaped,
    shape_text,
    with_comment,
)
from tcw.compiler.loops.printer.print_expressions import expression_text, with_terms
from tcw.compiler.loops.printer.print_graphs import call_text, output_text

INDENT = "    "
SIGNS = {"sum": "+=", "prod": "*=", "any": "|=", "all": "&="}
"""The signs of these reductions; the others print as `max=` and so on."""


@dataclass(frozen=True, slots=True)
class NestLine:
    """A line of a printed nest, below its name."""

    text: str
    depth: int
    """Loops around it."""
    statement: Statement | None = None
    """None if it opens a loop."""


def nest_text(nest: Nest) -> str:
    """The whole nest; ends with a newline."""
    name = f"{escaped(nest.name)}: {escaped(nest.label)}" if nest.label else escaped(nest.name)
    return "\n".join((name, *(line.text for line in nest_lines(nest)))) + "\n"


def nest_lines(nest: Nest) -> Iterator[NestLine]:
    """The lines of a printed nest, below its name."""
    opened: list[int] = []
    previous = -1
    for row, statement in _in_order(nest):
        loops = _loops(nest, statement)
        same = 0
        while same < min(len(loops), len(opened)) and loops[same] == opened[same]:
            same += 1
        if row != previous:
            while same and nest.axes[loops[same - 1]].reduced:
                same -= 1
        previous = row
        opened = loops
        for depth in range(same, len(loops)):
            axis = loops[depth]
            head = f"for {axis_name(axis)} < {nest.axes[axis].size}:"
            yield NestLine(INDENT * (depth + 1) + head, depth)
        line = f"{INDENT * (len(loops) + 1)}{statement_text(nest, statement)}"
        text = with_comment(line, () if isinstance(statement, Write) else statement.origins)
        yield NestLine(text, len(loops), statement)


def _in_order(nest: Nest) -> list[tuple[int, Statement]]:
    """(index of the loop over the row, statement), ordered to open few loops.

    In each loop, statements that vary over fewer axes come first; a buffer's only store comes last.
    """
    depths = [len(_loops(nest, statement)) for statement in nest.statements]
    deepest = max(depths, default=0)
    writes = [s.buffer for s in nest.statements if isinstance(s, Write)]
    keyed: list[tuple[int, int, int]] = []
    for place, (row, statement) in enumerate(zip(_rows(nest), nest.statements, strict=True)):
        depth = depths[place]
        if isinstance(statement, Write):
            alone = writes.count(statement.buffer) == 1
            depth = deepest + 1 if depth < deepest and alone else deepest
        elif not isinstance(statement, Let):
            depth = deepest
        keyed.append((row, depth, place))
    return [(row, nest.statements[place]) for row, _, place in sorted(keyed)]


def _loops(nest: Nest, statement: Statement) -> list[int]:
    """The loops around a statement, kept axes outside reduced ones."""
    return sorted(runs_over(statement), key=lambda axis: (nest.axes[axis].reduced, axis))


def _rows(nest: Nest) -> list[int]:
    """For each statement, how many loops over the row must complete before it."""
    complete: dict[str, int] = {}
    riders: set[str] = set()
    rows: list[int] = []
    for statement in nest.statements:
        names = [part.name for part in expressions(statement) if isinstance(part, Local)]
        row = max((complete.get(name, 0) for name in names), default=0)
        last = len(nest.statements) if any(name in riders for name in names) else row
        rows.append(last)
        if isinstance(statement, Reduction):
            main = nest.is_main(statement)
            complete[statement.name] = row + (main and bool(statement.over))
            if not main:
                riders.add(statement.name)
        elif not isinstance(statement, Write):
            complete[statement.name] = row
    return rows


def statement_text(nest: Nest, statement: Statement) -> str:
    """One statement, without its loops."""
    value = expression_text(statement.expression)
    if isinstance(statement, Write):
        place = with_terms(address_text(statement.address), statement.terms, ())
        sign = STORE_SIGNS[statement.mode]
        return f"{escaped(statement.buffer)}[{place}] {sign} {value}"
    name = escaped(statement.name)
    if isinstance(statement, Reduction):
        sign = SIGNS.get(statement.op, f"{statement.op}=")
        if not nest.is_main(statement):
            name += f"[{', '.join(map(axis_name, statement.axes))}]"
        return f"{name} {sign} {value}"
    if isinstance(statement, ScanAlong):
        way = "from the end of" if statement.reverse else "along"
        return f"{name} = running {statement.op} {way} {axis_name(statement.axis)} of {value}"
    return f"{name} = {value}"


def program_text(program: Program) -> str:
    """The whole program; ends with a newline."""
    parts = [f"program {escaped(program.graph.name)}\n"]
    for memory in program.memories.values():
        parts.append(f"memory {escaped(memory.name)}: {memory.dtype}{shape_text(memory.shape)}\n")
    for step in program.steps:
        parts.append(nest_text(step) if isinstance(step, Nest) else f"{call_text(step)}\n")
    for output in program.graph.outputs:
        parts.append(f"output {output_text(output)}\n")
    return "".join(parts)
