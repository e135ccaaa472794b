"""Operations of a graph that draw random numbers, as torch tags their overloads.

Inductor replaces them with its own generator (`torch._inductor.fx_passes.replace_random`), so the
numbers differ from eager's unless `torch._inductor.config.fallback_random` is set.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx

from tcw.compiler.graphs.drawn_numbers import drawn_numbers
from tcw.compiler.graphs.nodes import user_line
from tcw.compiler.trace.records import RandomOperation


def random_operations(module: fx.GraphModule) -> Iterator[RandomOperation]:
    """The random operations of an AOTAutograd graph and its nested graphs, in order.

    `torch.Tag.nondeterministic_seeded` marks every overload that may draw, including attention with
    a dropout of 0. Only the generator's state shows whether a number was drawn.
    """
    for inner in module.modules():
        if not isinstance(inner, fx.GraphModule):
            continue
        for node in inner.graph.nodes:
            target = node.target
            if (
                isinstance(target, torch._ops.OpOverload)
                and torch.Tag.nondeterministic_seeded in target.tags
            ):
                yield RandomOperation(name=_name(node), location=user_line(node))


def misread_numbers(module: fx.GraphModule) -> Iterator[RandomOperation]:
    """Numbers of Python's `random` that Inductor's code reads in another dtype than torch passes
    them, each at the line of its first use."""
    for _, node in drawn_numbers(module):
        line = next(filter(None, map(user_line, node.users)), None)
        yield RandomOperation(name="random", location=line)


def _name(node: fx.Node) -> str:
    """The user's operation: `dropout`, even if a decomposition has made it `aten.rand`."""
    made_of = node.meta.get("original_aten") or node.target
    name: str = getattr(made_of, "_opname", "") or str(made_of)
    return name.removeprefix("native_").strip("_")
