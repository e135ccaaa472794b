"""What the user sees before a decision on a pair: both sides, and the possible fused nest.

Inductor creates the body of a fused nest only during code generation. The sketch puts both bodies
under their common loops, without simplifying anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from tcw.compiler.decision import Detail
from tcw.compiler.inductor.loops import NodeLoops, deeper, loops_of, renamed, unflattened
from tcw.compiler.inductor.lowerings import Lowering
from tcw.compiler.trace.records import LoopLine


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
        nest=sketch(nests) if len(nests) == len(members) else (),
        sketched=True,
        means="two loop nests, which may still share one C++ function"
        if on_cpu
        else "two Triton kernels",
    )


def sketch(nests: Sequence[NodeLoops]) -> tuple[LoopLine, ...]:
    """Several nests as one: their common leading loops, then each nest's own.

    A nest that covers the same elements in one flat loop is written with the others' loops; its
    index becomes the corresponding sum.
    """
    if not nests:
        return ()
    deepest = max((nest.heads for nest in nests), key=len)
    nests = [unflattened(nest, deepest) for nest in nests]
    sizes = [[(head.reduced, head.size) for head in nest.heads] for nest in nests]
    levels = zip(*sizes, strict=False)
    common = len(list(takewhile(lambda at: len(set(at)) == 1 and not at[0][0], levels)))
    shared = nests[0].heads[:common]
    lines = list(shared)
    for nest in nests:
        names = {own.variable: head.variable for own, head in zip(nest.heads, shared, strict=False)}
        lines += nest.heads[common:]
        lines += deeper(renamed(nest.body, names), len(nest.heads))
    return tuple(lines)
