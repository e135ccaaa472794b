"""Numbers that `random` draws in a compiled function are read in the precision in which they come.

TorchDynamo traces `random.uniform` and its like as a float32 scalar, but passes Python's number as
float64 (torch/_dynamo/variables/builder.py, `wrap_unspecialized_primitive`; codegen.py,
`pass_arg_as_tensor`). Code compiled for float32 would read four of its eight bytes. Here the
graph's input becomes float64, and its first operation rounds it to the float32 that was traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from compiler.control.hooks import Hook, resolve

_SOURCE = "torch._dynamo.source:RandomValueSource"

HOOK = Hook(
    name="drawn numbers",
    offers="numbers that `random` draws in a compiled function",
    needs=(_SOURCE,),
    test="engine/test_drawn_numbers.py",
)


def as_they_come(module: fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """Rewrite Dynamo's graph in place. Returns its example inputs, with the drawn numbers in
    float64."""
    given = list(inputs)
    if HOOK.missing():
        return given
    source: Any = resolve(_SOURCE)
    changed = False
    for index, node in enumerate(module.graph.find_nodes(op="placeholder")):
        argument, value = node.meta.get("grapharg"), given[index]
        if not isinstance(getattr(argument, "source", None), source):
            continue
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float32:
            continue
        with module.graph.inserting_after(node):
            rounded = module.graph.call_method("to", (node, value.dtype))
        rounded.meta = {key: node.meta[key] for key in ("example_value",) if key in node.meta}
        node.replace_all_uses_with(rounded, lambda user, rounded=rounded: user is not rounded)
        given[index] = value.to(torch.float64)
        if "example_value" in node.meta:
            node.meta["example_value"] = node.meta["example_value"].to(torch.float64)
        changed = True
    if changed:
        module.recompile()
    return given
