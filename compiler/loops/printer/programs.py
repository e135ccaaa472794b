"""A program as text: its memory, then its nests and calls in order."""

from __future__ import annotations

from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.printer.graphs import call_text, output_text
from tcw.compiler.loops.printer.nests import nest_text
from tcw.compiler.loops.printer.words import escaped, shape_text
from tcw.compiler.loops.program import Program


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
