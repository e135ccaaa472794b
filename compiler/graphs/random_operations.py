"""Operations of a graph that draw random numbers, as torch tags their overloads.

Inductor replaces them with its own generator (`torch._inductor.fx_passes.replace_random`), so the
numbers differ from eager's unless `torch._inductor.config.fallback_random` is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


def drawn_again(nodes: Iterable[fx.Node]) -> Iterator[RandomOperation]:
    """Of nodes of a joint graph that the backward computes again: those that draw other numbers
    there than in the forward. Numbers that Inductor makes of saved seeds are the same; seeds that
    are made again are not."""
    for node in nodes:
        if getattr(node.target, "_opname", "") in _SEEDS:
            made = [user for lookup in node.users for user in (lookup, *lookup.users)]
            for user in made:
                if getattr(user.target, "_opname", "") in _OF_SEEDS:
                    yield RandomOperation(name=_name(user), location=user_line(user))
        elif _draws(node):
            yield RandomOperation(name=_name(node), location=user_line(node))


_SEEDS = ("inductor_seed", "inductor_seeds")
_OF_SEEDS = ("inductor_random", "inductor_randint")


def _draws(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target._opname in _OF_SEEDS:
        return False
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    names = [argument.name for argument in target._schema.arguments]
    if "dropout_p" not in names:
        return True
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return bool(given.get("dropout_p", 0.0) != 0.0)  # of an attention


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
