"""Faults in what is compiled: one operation of a captured graph computes something else.

The graph itself runs on ATen, so that the fault is all that is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from tcw.compiler.measure.precision.operations import base_name

Change = Callable[[Sequence[Any], Any, random.Random], Any]
"""From the arguments and the result of an operation, and a choice, another result."""


def _constant(args: Sequence[Any], result: Any, chance: random.Random) -> Any:
    return result * 1.01


def _dropped(args: Sequence[Any], result: Any, chance: random.Random) -> Any:
    return args[0].expand_as(result).to(result.dtype)


def _element(args: Sequence[Any], result: Any, chance: random.Random) -> Any:
    changed = result.clone(memory_format=torch.contiguous_format)
    place = chance.randrange(result.numel())
    changed.view(-1)[place] += max(float(result.abs().max()), 0.1)
    return changed


def _indices(args: Sequence[Any], result: Any, chance: random.Random) -> Any:
    return result.flip(-1)


FAULTS: Mapping[str, tuple[Callable[[fx.Node], bool], Change | None]] = {
    "constant": (lambda node: True, _constant),
    "dropped": (lambda node: base_name(node.target) in ("add", "sub"), _dropped),
    "element": (lambda node: True, _element),
    "indices": (lambda node: node.meta["val"].dim() > 0, _indices),
    "bound": (
        lambda node: base_name(node.target) in ("sum", "mean", "mm", "bmm", "amax", "softmax"),
        None,
    ),
}
"""By name: which operations can have it, and what becomes of the result. A wrong bound leaves out
the last terms of a reduction: they are zero."""


class Planted:
    """A backend for `torch.compile` with one fault, at an operation that `seed` chooses."""

    def __init__(self, fault: str, seed: int) -> None:
        self.fault = fault
        self.seed = seed
        self.planted = 0
        """Graphs that have it."""

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.aot_autograd import make_boxed_func

        def compiled(graph: fx.GraphModule, given: Sequence[Any]) -> Any:
            possible, change = FAULTS[self.fault]
            nodes = [node for node in graph.graph.nodes if _computes(node) and possible(node)]
            if not nodes or self.planted:
                return make_boxed_func(graph.forward)
            self.planted += 1
            chosen = random.Random(self.seed).choice(nodes)
            return make_boxed_func(_Wrong(graph, chosen, change, self.seed).run)

        made: Callable[..., Any] = aot_autograd(fw_compiler=compiled)
        return made(module, inputs)


class _Wrong(fx.Interpreter):
    def __init__(
        self, graph: fx.GraphModule, chosen: fx.Node, change: Change | None, seed: int
    ) -> None:
        super().__init__(graph)
        self.chosen, self.change, self.seed = chosen, change, seed

    def run_node(self, node: fx.Node) -> Any:
        if node is not self.chosen:
            return super().run_node(node)
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        if self.change is not None:
            result = node.target(*args, **kwargs)
            return self.change(args, result, random.Random(self.seed))
        shorter = args[0].clone()
        dims = args[1] if base_name(node.target) in ("sum", "mean", "amax", "softmax") else -1
        dim = dims[0] if isinstance(dims, (list, tuple)) and dims else dims
        shorter.select(dim if isinstance(dim, int) else -1, -1).zero_()
        return node.target(shorter, *args[1:], **kwargs)


def _computes(node: fx.Node) -> bool:
    """Whether it is an operation with one result, of floats, that it does not only view."""
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, torch.Tensor):
        return False
    tensors = [one.meta.get("val") for one in node.all_input_nodes]
    first = node.args[0] if node.args else None
    return (
        value.is_floating_point()
        and value.numel() > 0
        and any(isinstance(one, torch.Tensor) for one in tensors)
        and isinstance(first, fx.Node)
        and isinstance(first.meta.get("val"), torch.Tensor)
        and first.meta["val"].dim() > 0
        and isinstance(node.target, torch._ops.OpOverload)
        and not any(one.alias_info is not None for one in node.target._schema.returns)
    )
