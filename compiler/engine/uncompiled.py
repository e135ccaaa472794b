"""A graph run uncompiled on ATen, operation by operation: the fallback that always works."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tcw.compiler.graphs.aten_facts import is_view
from tcw.compiler.runtime.wrapper_helpers import laid_out, row_by_row

Compiled = Callable[[list[Any]], Any]
"""Takes its arguments as a list, which it empties, so that each is freed after its last use."""


@dataclass(frozen=True, slots=True)
class UncompiledGraph:
    """A graph that was left to ATen."""

    module: fx.GraphModule
    call: Compiled
    takes_list: bool
    """Its Python code takes the arguments in a list."""

    @property
    def outermost(self) -> Compiled:
        """What AOTAutograd calls."""
        return self.call


def calls_aten(node: fx.Node) -> bool:
    """Whether the node is an operation, not a `getitem` or a computation of sizes."""
    return node.op == "call_function" and isinstance(
        node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    )


def boxed(function: Compiled) -> Compiled:
    """Mark a function as taking its arguments in a list (torch/_functorch/aot_autograd.py)."""
    function._boxed_call = True  # type: ignore[attr-defined]
    return function


def run_uncompiled(module: fx.GraphModule) -> Compiled:
    """See `uncompiled`."""
    return uncompiled(module).call


def uncompiled(module: fx.GraphModule) -> UncompiledGraph:
    """The graph's own Python code, with its arguments in a list if this torch supports that."""
    codegen: Any = getattr(fx.graph, "_BoxedCodeGen", None)
    takes_list = codegen is not None
    keep_foretold_strides(module.graph)
    if takes_list:
        module.graph.set_codegen(codegen())
    module.recompile()

    def run(arguments: list[Any]) -> Any:
        if takes_list:
            return module.forward(arguments)
        given = tuple(arguments)
        arguments.clear()
        return module.forward(*given)

    return UncompiledGraph(module, boxed(run), takes_list)


def run_uncompiled_on_demand(module: fx.GraphModule) -> Compiled:
    """`run_uncompiled`, created at the first call, since most graphs are never called this way."""
    made: list[Compiled] = []

    def run(arguments: list[Any]) -> Any:
        if not made:
            made.append(run_uncompiled(module))
        return made[0](arguments)

    return boxed(run)


def keep_foretold_strides(graph: fx.Graph) -> None:
    """Insert, once and in place, a check after each operation whose strides matter.

    A library may return strides that differ from the fake tensor's (torch 2.11's FFTs do).
    AOTAutograd promised the caller the strides of the outputs, and a view was traced with those of
    its base. In such places, a tensor with other strides is copied. Compiled graphs do the same in
    their wrapper's text (compiler/runtime/wrapper.py).
    """
    for node in dict.fromkeys(_relied_on(graph)):
        check = _check(node) if _makes_memory(node) else None
        if check is None or any(user.target in (laid_out, row_by_row) for user in node.users):
            continue
        function, arguments = check
        with graph.inserting_after(node):
            checked = graph.call_function(function, (node, *arguments))
        checked.meta = dict(node.meta)
        node.replace_all_uses_with(checked, lambda user, checked=checked: user is not checked)


def _relied_on(graph: fx.Graph) -> Iterator[fx.Node]:
    """The bases of views, and the graph's outputs."""
    for node in graph.nodes:
        if node.op == "output" or is_view(node):
            yield from node.all_input_nodes


def _makes_memory(node: fx.Node) -> bool:
    if node.op == "call_function" and node.target is operator.getitem:
        maker = node.args[0]
        return isinstance(maker, fx.Node) and _makes_memory(maker)
    return isinstance(node.target, torch._ops.OpOverload) and not is_view(node)


def _check(node: fx.Node) -> tuple[Any, tuple[Any, ...]] | None:
    """A helper, with arguments, that gives the tensor its predicted strides. None if the strides
    are symbolic and not those of a contiguous tensor."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    sizes, strides = tuple(value.shape), tuple(value.stride())
    if all(type(one) is int for one in (*sizes, *strides)):
        return laid_out, (sizes, strides)
    width: Any = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if str(stride) != str(width):
            return None
        width = width * size
    return row_by_row, ()
