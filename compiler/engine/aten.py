"""A graph run uncompiled on ATen, operation by operation: the fallback that always works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from compiler.engine.foretold import keep_foretold_strides

Compiled = Callable[[list[Any]], Any]
"""Takes its arguments as a list, which it empties, so that each is freed after its last use."""


@dataclass(frozen=True, slots=True)
class AsItIs:
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


def run_as_it_is(module: fx.GraphModule) -> Compiled:
    """See `as_it_is`."""
    return as_it_is(module).call


def as_it_is(module: fx.GraphModule) -> AsItIs:
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

    return AsItIs(module, boxed(run), takes_list)


def run_as_it_is_when_asked(module: fx.GraphModule) -> Compiled:
    """The same, created at the first call, since most graphs never get one."""
    made: list[Compiled] = []

    def run(arguments: list[Any]) -> Any:
        if not made:
            made.append(run_as_it_is(module))
        return made[0](arguments)

    return boxed(run)
