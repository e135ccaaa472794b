"""The reference interpreter: runs value graphs and programs on real tensors, slowly and plainly.

It defines the semantics of the loop IR: lowering, fusion and code generation are tested against it.
It is the only part of `loops/` that imports torch; nothing else here imports it.
"""

from tcw.compiler.loops.interpreter.run_programs import run_graph, run_program

__all__ = ["run_graph", "run_program"]
