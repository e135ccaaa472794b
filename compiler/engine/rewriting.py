"""What the passes over an ATen graph share: adding operations, and asking whether to rewrite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx

from tcw.compiler.control.gate import Gate
from tcw.compiler.protocol.decision import Decision, Detail


def value_of(argument: Any) -> Any:
    """What an argument of an operation is when the graph is traced: of a node, its result."""
    return argument.meta["val"] if isinstance(argument, fx.Node) else argument


def add_call(like: fx.Node, target: Any, *args: Any, **options: Any) -> fx.Node:
    """One more operation at the graph's place of insertion, with its result, and with what is known
    of `like` besides: the user's lines."""
    made = like.graph.call_function(target, args, options)
    args, options = fx.node.map_aggregate((args, options), value_of)
    made.meta = {**like.meta, "val": target(*args, **options)}
    return made


def choose(
    gate: Gate,
    *,
    graph: str,
    kind: str,
    nodes: Sequence[str],
    choices: tuple[str, ...],
    default: str,
    rule: str,
    reason: str,
    means: str,
    numbers: Mapping[str, int | float] | None = None,
) -> str:
    """The gate's choice about these nodes, the first of which names the decision."""
    return gate.decide(
        Decision(
            graph=graph,
            kind=kind,
            names=(nodes[0],),
            default=default,
            choices=choices,
            rule=rule,
            reason=reason,
            numbers=numbers or {},
            detail=(lambda: Detail(origins=tuple(nodes), means=means)) if gate.asks else None,
        )
    )
