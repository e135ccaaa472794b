"""The printer: value graphs, nests and programs as textbook loops.

The text is deterministic. Names come from the user's program, so non-printable characters in them
are escaped.
"""

from compiler.loops.printer.graphs import describe_graph, graph_text
from compiler.loops.printer.nests import INDENT, NestLine, describe_nest, nest_lines, nest_text
from compiler.loops.printer.programs import describe_program, program_text

__all__ = [
    "INDENT",
    "NestLine",
    "describe_graph",
    "describe_nest",
    "describe_program",
    "graph_text",
    "nest_lines",
    "nest_text",
    "program_text",
]
