"""The reference interpreter: runs value graphs and programs on real tensors, slowly and plainly.

It says what the loop IR means. Lowering, fusion and code generation are tested against it.
The only part of `loops/` that imports torch; nothing else here imports it.
"""

from compiler.loops.interpreter.graphs import run_graph
from compiler.loops.interpreter.programs import run_program

__all__ = ["run_graph", "run_program"]
