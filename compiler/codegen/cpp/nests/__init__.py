"""Loop nests as C++: `emit(nest, dtypes, vocabulary) -> Function`.

A nest is simplified (`simplify`), cut into phases where a reduction is complete only after the
whole nest (`phases`), and scheduled: what lies on the lanes, what threads share (`schedule`). A row
is walked over in passes (`passes`); `rows` writes their loops, `accumulators` what reductions add
up, `riders` what only the whole nest completes, `scans` what is carried on, `values` the
expressions, each in the outermost loop that knows what it needs.
"""

from compiler.codegen.cpp.nests.emit import emit

__all__ = ["emit"]
