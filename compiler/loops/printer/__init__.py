"""The printer: value graphs, nests and programs as textbook loops.

The text is deterministic. Names come from the user's program, so non-printable characters in them
are escaped.
"""

from tcw.compiler.loops.printer.print_graphs import graph_text
from tcw.compiler.loops.printer.print_nests import (
    INDENT,
    NestLine,
    nest_lines,
    nest_text,
    program_text,
)

__all__ = ["INDENT", "NestLine", "graph_text", "nest_lines", "nest_text", "program_text"]
