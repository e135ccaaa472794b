"""A graph run as it is, operation by operation, on ATen: the road that is always open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

Compiled = Callable[[list[Any]], Any]
"""Takes its arguments as a list, which it empties, so that each dies after its last use."""


def boxed(function: Compiled) -> Compiled:
    """Mark a function as taking its arguments in a list (torch/_functorch/aot_autograd.py)."""
    function._boxed_call = True  # type: ignore[attr-defined]
    return function


def run_as_it_is(module: fx.GraphModule) -> Compiled:
    """The graph's own Python, with its arguments in a list where this torch can write it so."""
    codegen: Any = getattr(fx.graph, "_BoxedCodeGen", None)
    takes_list = codegen is not None
    if takes_list:
        module.graph.set_codegen(codegen())
        module.recompile()

    def run(arguments: list[Any]) -> Any:
        if takes_list:
            return module.forward(arguments)
        given = tuple(arguments)
        arguments.clear()
        return module.forward(*given)

    return boxed(run)


def run_as_it_is_when_asked(module: fx.GraphModule) -> Compiled:
    """The same, made at the first call: most graphs never get one."""
    made: list[Compiled] = []

    def run(arguments: list[Any]) -> Any:
        if not made:
            made.append(run_as_it_is(module))
        return made[0](arguments)

    return boxed(run)
