"""Loop nests as C++: `emit(nest, dtypes, vocabulary) -> Function`.

A nest is simplified (`simplify`), split into phases at reductions that finish only after the
whole nest (`phases`), and scheduled: which axis is on the lanes, what threads share (`schedule`). A
row is traversed in passes (`passes`). `row_loops` writes their loops, `accumulators` the
reductions, `riders` those that only the whole nest completes, `scans` the carried values, and
`vector_values` the expressions, each in the outermost loop that has everything it needs.
"""

from tcw.compiler.codegen.cpp.nests.emit import emit

__all__ = ["emit"]
