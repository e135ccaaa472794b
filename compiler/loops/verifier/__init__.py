"""The verifier: invariants of value graphs, nests and programs between any two stages.

Tests run it, and so does each compile under `TCW_STRICT=1`, between the stages. Bounds of symbolic
sizes are checked for the sizes that the graph is compiled for.
"""

from tcw.compiler.loops.verifier.check_graphs import verify_graph
from tcw.compiler.loops.verifier.check_nests import verify_program
from tcw.compiler.loops.verifier.spaces import Malformed

__all__ = ["Malformed", "verify_graph", "verify_program"]
