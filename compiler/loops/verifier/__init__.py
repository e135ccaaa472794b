"""The verifier: what must hold of a value graph, a nest and a program between any two stages.

It is run by tests, and between the stages of a compile under `TCW_STRICT=1`. Bounds are checked
where sizes are numbers, and for the sizes that the graph is compiled for where they are symbolic.
"""

from compiler.loops.verifier.graphs import verify_graph
from compiler.loops.verifier.nests import verify_nest
from compiler.loops.verifier.programs import verify_program
from compiler.loops.verifier.spaces import Malformed

__all__ = ["Malformed", "verify_graph", "verify_nest", "verify_program"]
