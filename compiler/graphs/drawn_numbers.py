"""Inputs of a captured graph that are numbers drawn by Python's `random`, traced as float32.

TorchDynamo traces `random.uniform` and its like as a float32 scalar, but passes Python's number as
float64 (torch/_dynamo/variables/builder.py, `wrap_unspecialized_primitive`; codegen.py,
`pass_arg_as_tensor`). Code compiled for float32 then reads four of its eight bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from tcw.compiler.control.hooks import Hook, resolve

_SOURCE = "torch._dynamo.source:RandomValueSource"

HOOK = Hook(
    name="drawn numbers",
    offers="numbers that `random` draws in a compiled function",
    needs=(_SOURCE,),
    test="engine/test_drawn_numbers.py",
)


def drawn_numbers(module: fx.GraphModule) -> Iterator[tuple[int, fx.Node]]:
    """Their positions among the inputs, and their placeholders."""
    if HOOK.missing():
        return
    source: Any = resolve(_SOURCE)
    for index, node in enumerate(module.graph.find_nodes(op="placeholder")):
        if isinstance(getattr(node.meta.get("grapharg"), "source", None), source):
            value = node.meta.get("example_value")
            if isinstance(value, torch.Tensor) and value.dtype is torch.float32:
                yield index, node
