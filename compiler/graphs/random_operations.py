"""Operations of a graph that draw random numbers, as torch tags their overloads.

Inductor draws numbers of its own in their place (`torch._inductor.fx_passes.replace_random`), other
than those of eager, unless `torch._inductor.config.fallback_random` is set.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx

from compiler.graphs.nodes import node_stack
from compiler.trace.records import RandomOperation


def random_operations(module: fx.GraphModule) -> Iterator[RandomOperation]:
    """Those of a graph that AOTAutograd traced, and of the graphs inside it, in their order.

    `torch.Tag.nondeterministic_seeded` is on every overload that may draw, also on an attention
    whose dropout is 0: whether one was drawn, the generator says.
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
                stack = node_stack(node)
                yield RandomOperation(name=_name(node), location=stack[-1] if stack else None)


def _name(node: fx.Node) -> str:
    """`dropout`, where a decomposition has made it into `aten.rand`."""
    made_of = node.meta.get("original_aten") or node.target
    name: str = getattr(made_of, "_opname", "") or str(made_of)
    return name.removeprefix("native_").strip("_")
