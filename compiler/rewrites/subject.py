"""What a rewrite is given: a graph, and what it may know and ask about it. Each adds operations by
`add_call`, and asks by `choose`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from tcw.compiler.control.gate import Gate
from tcw.compiler.protocol.decision import Decision, Detail
from tcw.compiler.trace.records.graph import GraphKind


@dataclass
class Subject:
    """A graph that rewrites change in place."""

    module: fx.GraphModule
    inputs: Sequence[Any] = ()
    """What the graph is compiled for: a rewrite may replace them."""
    graph: str = ""
    """The id in decisions: `0/0/forward`."""
    gate: Gate = field(default_factory=Gate)
    kind: GraphKind = "inference"
    promised: int = 0
    """The first so many outputs are the user's, who was promised their strides."""
    device: str = "cpu"
    """`cuda` where loops run on a GPU."""


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
    subject: Subject,
    *,
    kind: str,
    nodes: Sequence[str],
    choices: tuple[str, ...],
    default: str,
    rule: str,
    reason: str,
    means: str,
    numbers: Mapping[str, int | float] | None = None,
    about: str = "",
) -> str:
    """The gate's choice about these nodes. The first of them, or `about`, names the decision."""
    gate = subject.gate
    return gate.decide(
        Decision(
            graph=subject.graph,
            kind=kind,
            names=(about or nodes[0],),
            default=default,
            choices=choices,
            rule=rule,
            reason=reason,
            numbers=numbers or {},
            detail=(lambda: Detail(origins=tuple(nodes), means=means)) if gate.asks else None,
        )
    )
