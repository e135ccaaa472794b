"""Numbers that `random` draws in a compiled function are read in the precision in which they come.

The graph's input becomes float64, and its first operation rounds it to the float32 that was traced
(`tcw.compiler.graphs.drawn_numbers`).
"""

from __future__ import annotations

import torch

from tcw.compiler.graphs.drawn_numbers import drawn_numbers
from tcw.compiler.rewrites.subject import Subject


def drawn_numbers_in_float64(subject: Subject) -> int:
    """Rewrite Dynamo's graph and its inputs in place. Returns the number of drawn numbers."""
    module, given = subject.module, list(subject.inputs)
    found = list(drawn_numbers(module))
    for index, node in found:
        value = node.meta["example_value"]
        with module.graph.inserting_after(node):
            rounded = module.graph.call_method("to", (node, torch.float32))
        rounded.meta = {"example_value": value}
        node.replace_all_uses_with(rounded, lambda user, rounded=rounded: user is not rounded)
        node.meta["example_value"] = value.to(torch.float64)
        given[index] = given[index].to(torch.float64)
    subject.inputs = given
    return len(found)
