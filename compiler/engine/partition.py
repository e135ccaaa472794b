"""What crosses from the forward to the backward: torch's min-cut, with our user's overrides.

`min_cut_rematerialization_partition` (torch/_functorch/partitioners.py) chooses; a value that an
override names is marked with `CheckpointPolicy`, as selective activation checkpointing marks it,
and the cut is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

from compiler.autograd.partition import OVERRIDDEN
from compiler.control.decisions import RECOMPUTE, SAVE, Decision, Gate
from compiler.engine.common_subexpressions import merge_common_subexpressions
from compiler.engine.recording import current
from compiler.graphs.current import current_compile_id, graph_id

Halves = tuple[fx.GraphModule, fx.GraphModule]

_MARKS = {SAVE: CheckpointPolicy.MUST_SAVE, RECOMPUTE: CheckpointPolicy.MUST_RECOMPUTE}


def partition(
    joint: fx.GraphModule, joint_inputs: Sequence[Any], *, gate: Gate | None = None, **kwargs: Any
) -> Halves:
    """The forward and the backward half of a joint graph. Every saved or recomputed tensor is a
    decision `tcw/0/0/joint/save/NAME`."""
    gate = gate or current().gate
    graph = graph_id(current_compile_id(), "joint")
    halves = _cut(joint, joint_inputs, **kwargs)
    default = crossing(*halves)
    nodes = {node.name: node for node in joint.graph.nodes}
    wanted = {
        name: choice
        for name, choice in gate.chosen(graph, "save").items()
        if choice in _MARKS and name in default and default[name] != choice
    }
    legal = {name: choice for name, choice in wanted.items() if not forbidden(nodes[name], choice)}
    if legal:
        for name, choice in legal.items():
            nodes[name].meta["recompute"] = _MARKS[choice]
            nodes[name].meta[OVERRIDDEN] = choice
        halves = _cut(joint, joint_inputs, **kwargs)
        chosen = crossing(*halves)
    for name, choice in default.items():
        illegal = forbidden(nodes[name], RECOMPUTE)
        bans = {RECOMPUTE: illegal} if illegal else {}
        if name in legal and chosen.get(name, RECOMPUTE) != legal[name]:
            bans[legal[name]] = ("min-cut", "torch's partitioner keeps its own choice")
        gate.decide(
            Decision(
                graph=graph,
                kind="save",
                names=(name,),
                default=choice,
                choices=(SAVE, RECOMPUTE),
                rule="min-cut",
                numbers=_numbers(nodes[name]),
                forbidden=bans,
            )
        )
    return halves


def _cut(joint: fx.GraphModule, joint_inputs: Sequence[Any], **kwargs: Any) -> Halves:
    """Torch's min-cut, with our own merging of common subexpressions in place of its own."""
    if functorch_config.cse:
        merge_common_subexpressions(joint.graph)
    with functorch_config.patch(cse=False):
        halves: Halves = min_cut_rematerialization_partition(joint, joint_inputs, **kwargs)
    return halves


def crossing(forward: fx.GraphModule, backward: fx.GraphModule) -> dict[str, str]:
    """Tensors that the forward computes and the backward needs: saved, or computed again."""
    computed = {node.name for node in forward.graph.nodes if node.op == "call_function"}
    found = {}
    for node in backward.graph.nodes:
        if node.name in computed and isinstance(node.meta.get("val"), torch.Tensor):
            found[node.name] = SAVE if node.op == "placeholder" else RECOMPUTE
    return found


def forbidden(node: fx.Node, choice: str) -> tuple[str, str] | None:
    """The rule that makes a choice illegal for this node, with its reason."""
    if choice != RECOMPUTE:
        return None
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        return "random", f"{node.name} draws random numbers: a second draw gives others"
    if getattr(getattr(node.target, "_schema", None), "is_mutable", False):
        return "mutation", f"{node.name} writes to its input: it cannot run twice"
    return None


def _numbers(node: fx.Node) -> dict[str, int]:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and isinstance(value.numel(), int):
        return {"bytes": value.numel() * value.element_size()}
    return {}
