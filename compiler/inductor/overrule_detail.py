"""What the user sees before a decision on a pair: both sides, and the possible fused nest.

Inductor creates the body of a fused nest only during code generation. The sketch puts both bodies
under their common loops, without simplifying anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from compiler.decision import Detail
from compiler.inductor.loops import Loops, loop_line, loops_of, renamed, unflattened
from compiler.inductor.lowerings import Lowering


def detail_of(first: Any, second: Any, lowering: Lowering) -> Detail:
    """Details of two groups whose fusion Inductor considers."""
    members = [*first.get_nodes(), *second.get_nodes()]
    origins = {
        origin for node in members for origin in lowering.operations.get(node.get_name(), ())
    }
    in_order = [node.name for node in lowering.positions if node.name in origins]
    bodies = [node._body for node in members if hasattr(getattr(node, "_body", None), "root_block")]
    nests = [loops_of(body) for body in bodies]
    on_cpu = str(first.get_device() or "cpu").startswith("cpu")
    return Detail(
        first=tuple(node.get_name() for node in first.get_nodes()),
        second=tuple(node.get_name() for node in second.get_nodes()),
        origins=tuple(in_order),
        if_fused=sketch(nests) if len(nests) == len(members) else "",
        sketched=True,
        means="two loop nests, which may still share one C++ function"
        if on_cpu
        else "two Triton kernels",
    )


def sketch(nests: Sequence[Loops]) -> str:
    """Several nests as one: their common leading loops, then each nest's own.

    A nest that covers the same elements in one flat loop is written with the others' loops; its
    index becomes the corresponding sum.
    """
    if not nests:
        return ""
    deepest = max(nests, key=lambda nest: len(nest[0]))[0]
    nests = [unflattened(loops, body, deepest) for loops, body in nests]
    heads = [[(word, extent) for word, _, extent in loops] for loops, _ in nests]
    common = len(
        list(
            takewhile(lambda at: len(set(at)) == 1 and at[0][0] == "for", zip(*heads, strict=False))
        )
    )
    names = [variable for _, variable, _ in nests[0][0][:common]]
    lines = [loop_line(depth, loop) for depth, loop in enumerate(nests[0][0][:common])]
    for loops, body in nests:
        own = dict(zip([variable for _, variable, _ in loops[:common]], names, strict=True))
        depth = common
        for loop in loops[common:]:
            lines.append(loop_line(depth, loop))
            depth += 1
        lines += ["  " * depth + renamed(line, own) for line in body]
    return "\n".join(lines) + "\n"
