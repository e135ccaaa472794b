"""Numbers that a forward hands to its backward.

AOTAutograd saves a number that stands in a tensor (`t.item()`) as a Python number. Loops read such
a number where it is stored (`compiler/lowering/reals.py`): to the forward it is a tensor of no
dimensions, of which Python reads the number after the call. The backward gets a float as such a
tensor; an int may be a size there, and stays a symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tcw.compiler.engine.uncompiled import Compiled, boxed
from tcw.compiler.graphs.aten_facts import outputs_of

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Numbers:
    """The places of a graph's inputs and outputs that are numbers to its caller, tensors to it."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    def around(self, compiled: Compiled) -> Compiled:
        """The graph as its caller sees it."""
        if not self.inputs and not self.outputs:
            return compiled

        def call(arguments: list[Any]) -> Any:
            for place in self.inputs:
                arguments[place] = torch.tensor(arguments[place], dtype=torch.float64)
            results = list(compiled(arguments))
            for place in self.outputs:
                results[place] = results[place].item()
            return results

        return boxed(call)


def numbers_as_tensors(
    module: fx.GraphModule, example_inputs: Sequence[Any]
) -> tuple[Numbers, list[Any]]:
    """Let a graph take and return its symbolic numbers as tensors; they, and its example inputs.
    Only on a CPU: on a GPU each of them would wait for it."""
    inputs = module.graph.find_nodes(op="placeholder")
    tensors = [node.meta["val"] for node in inputs if _is(node, torch.Tensor)]
    examples = list(example_inputs)
    if not tensors or any(value.device.type != "cpu" for value in tensors):
        return Numbers(), examples
    taken = [i for i, node in enumerate(inputs) if _is(node, torch.SymFloat) and node.users]
    results = list(outputs_of(module))
    returned = [i for i, node in enumerate(results) if _is(node, torch.SymFloat) or _is_item(node)]
    if not taken and not returned:
        return Numbers(), examples
    with tensors[0].fake_mode:
        number, whole = (torch.empty((), dtype=one) for one in (torch.float64, torch.int64))
    for place in taken:
        node = inputs[place]
        with module.graph.inserting_after(inputs[-1]):
            item = module.graph.call_function(aten._local_scalar_dense.default, (node,))
        item.meta = dict(node.meta)
        node.replace_all_uses_with(item, delete_user_cb=lambda user, item=item: user is not item)
        node.meta = {**node.meta, "val": number}
        examples[place] = number
    output = module.graph.output_node()
    for place in returned:
        node = results[place]
        stored = number if _is(node, torch.SymFloat) else whole
        with module.graph.inserting_before(output):
            made = module.graph.call_function(
                aten.full.default, ([], node), {"dtype": stored.dtype}
            )
        made.meta = {**node.meta, "val": stored}
        results[place] = made
    output.args = (type(outputs_of(module))(results),)
    return Numbers(tuple(taken), tuple(returned)), examples


def _is(node: Any, kind: type) -> bool:
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), kind)


def _is_item(node: Any) -> bool:
    """Whether it is an int that a tensor holds."""
    return _is(node, torch.SymInt) and node.target is aten._local_scalar_dense.default
