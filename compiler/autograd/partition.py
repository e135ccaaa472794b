"""What crosses from the forward to the backward, and why: the partitioner's decision.

torch's min-cut (`solve_min_cut` in torch/_functorch/partitioners.py) splits each node into `X_in`
and `X_out`. The capacity between the two is the cost of saving X. An unbounded edge `source → X_in`
bans recomputing X; one to `sink` means that the backward needs X. torch writes its reasons on those
edges, and this hook reads them while torch holds the network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from torch import fx

from tcw.compiler.autograd.split import Extraction, JointSplit, MinCut, current_split
from tcw.compiler.control.hooks import RecordingHook, Uninstall, during, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.random_operations import drawn_again
from tcw.compiler.protocol.decision import SAVE
from tcw.compiler.trace.records import Graph, Node, Partition, SavedValue

SavedChoice = Literal["saved", "recomputed", "input"]

OVERRIDDEN = "overridden_choice"
"""Key in the metadata of a node whose choice comes from an override, not from the user's code."""

UNSTATED = "cannot recompute: torch does not say why (used far apart, or in a long fusible chain)"
"""The reason for the two bans of `solve_min_cut` that torch leaves unexplained."""


def read_cut(network: Any, value: float | None, saved: list[fx.Node]) -> MinCut:
    """Weights and reasons from the edges of torch's network."""
    cut = MinCut(tuple(node.name for node in saved), value, {}, {})
    for start, end, data in network.edges(data=True):
        reason = str(data.get("reason") or "")
        if start == "source":
            words = UNSTATED if reason in ("", "cannot recompute") else reason
            cut.banned[end.removesuffix("_in")] = words
        elif start.endswith("_in") and end == start[: -len("_in")] + "_out":
            cut.weight[start.removesuffix("_in")] = float(data.get("capacity", math.nan))
    return cut


def chosen_cut(split: JointSplit) -> MinCut | None:
    """The run of the min-cut whose result torch used; None if no run matches.

    After the cut, torch drops unread values and adds sizes. So this is the smallest result that
    contains every saved tensor.
    """
    if split.extraction is None:
        return None
    taken = {node.name for node in split.extraction.saved}
    fitting = [cut for cut in split.cuts if taken <= set(cut.saved)]
    return min(fitting, key=lambda cut: len(cut.saved), default=None)


class _Reasons:
    """Why each value of one split is saved or recomputed, as text."""

    def __init__(self, split: JointSplit, outputs: frozenset[str]) -> None:
        self.split = split
        self.cut = chosen_cut(split)
        self.nodes = {node.name: node for node in split.joint.graph.nodes}
        self.outputs = outputs
        extraction = split.extraction
        self.static = {node.name for node in extraction.static or ()} if extraction else set()

    def given(self, name: str) -> str:
        if name in self.nodes and not _is_tensor(self.nodes[name]):
            return "a size: passed on as a number"
        if name in self.static:
            return "a parameter or buffer: it is kept anyway"
        return "an input of the forward: kept as it is, not copied"

    def saved(self, name: str) -> str:
        reason = self._why_saved(name)
        return f"{reason}; also an output of the forward" if name in self.outputs else reason

    def _why_saved(self, name: str) -> str:
        from torch.utils.checkpoint import CheckpointPolicy

        node = self.nodes.get(name)
        if node is None:
            return "added by the partitioner (random number state)"
        if OVERRIDDEN in node.meta:
            return "an override keeps it"
        if node.meta.get("recompute") is CheckpointPolicy.MUST_SAVE:
            return "cannot recompute: marked MUST_SAVE"
        if node.meta.get("val") is not None and not _is_tensor(node):
            return "a size: passed on as a number"
        if self.cut is None:
            if self.split.partitioner == "default":
                return "the default partitioner saves what the backward reads"
            return "chosen within the activation memory budget"
        banned = self.cut.banned.get(name)
        if banned:
            return banned
        source = self._banned_source(node)
        if source is not None:
            words = self.cut.banned[source].removeprefix("cannot recompute: ")
            return f"cheapest to save after {source}, which cannot be recomputed: {words}"
        return "cheapest to save: the minimum cut runs through it"

    def _banned_source(self, node: fx.Node) -> str | None:
        """The nearest non-input predecessor that cannot be recomputed."""
        assert self.cut is not None
        reached = {node}
        waiting = [node]
        for item in waiting:  # grows: the nearest come first
            for source in item.all_input_nodes:
                if source in reached:
                    continue
                if source.name in self.cut.banned and source.op != "placeholder":
                    return str(source.name)
                reached.add(source)
                waiting.append(source)
        return None

    def recomputed(self, name: str) -> str:
        import torch._functorch.partitioners as partitioners

        node = self.nodes[name]
        if OVERRIDDEN in node.meta:
            return "an override has it computed again"
        if partitioners.must_recompute(node):
            return "requested by the user: torch.utils.checkpoint"
        if _is_view(node):
            return "a view: computing it again moves no data"
        if not _is_tensor(node):
            return "a size: computed again from saved ones"
        if self.cut is None:
            if self.split.partitioner == "default":
                return "not saved: computed again from saved values"
            return "chosen within the activation memory budget"
        return "cheaper than saving it: nothing bans computing it again from what is saved"

    def weight(self, name: str) -> float | None:
        found = self.cut.weight.get(name) if self.cut is not None else None
        return found if found is not None and math.isfinite(found) else None


def reasons_of(
    split: JointSplit | None, forward: fx.GraphModule
) -> Callable[[str, str], tuple[str, float | None]]:
    """A function from (name, choice) of a saved or recomputed value to (reason, weight in the cut),
    as far as the split is known."""
    if split is None or split.joint is None or split.extraction is None:
        return lambda _name, _choice: ("", None)
    outputs = output_names(forward.graph)[: split.extraction.outputs]
    reasons = _Reasons(split, frozenset(outputs))

    def reason(name: str, choice: str) -> tuple[str, float | None]:
        words = reasons.saved(name) if choice == SAVE else reasons.recomputed(name)
        return words, reasons.weight(name)

    return reason


def _is_tensor(node: fx.Node) -> bool:
    import torch

    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, torch.Tensor) for item in value)
    return isinstance(value, torch.Tensor)


def _is_view(node: fx.Node) -> bool:
    """Whether torch lists the node's op as a view (`get_default_op_list`)."""
    import torch._functorch.partitioners as partitioners

    return bool(partitioners.get_default_op_list().is_view(node))


def output_names(graph: fx.Graph) -> list[str]:
    """The names of a graph's outputs in order; "" for an output that is not a node."""
    results = next(iter(graph.find_nodes(op="output"))).args[0]
    if not isinstance(results, (list, tuple)):
        results = (results,)
    return [item.name if isinstance(item, fx.Node) else "" for item in results]


def partition_record(
    split: JointSplit, outputs: list[str], joint: Graph, forward: Graph, backward: Graph
) -> Partition:
    """Every value that the backward receives from the forward or recomputes.

    `outputs` names the forward's outputs; those after the user's outputs go to the backward.
    """
    assert split.extraction is not None
    returned = split.extraction.outputs
    reasons = _Reasons(split, frozenset(outputs[:returned]))
    in_joint = {node.name: node for node in joint.nodes}
    in_forward = {node.name: node for node in forward.nodes}
    given = [name for name in outputs[returned:] if name]

    def value(name: str, choice: SavedChoice, reason: str) -> SavedValue:
        node = in_joint.get(name) or in_forward.get(name)
        tensor = node.value if node is not None else None
        return SavedValue(
            node=name,
            choice=choice,
            tensor=tensor,
            bytes=tensor.bytes if tensor is not None else None,
            reason=reason,
            weight=reasons.weight(name),
            location=node.location if node is not None else None,
        )

    values = []
    for name in given:
        twin = in_forward.get(name)
        if twin is not None and twin.op == "placeholder":
            values.append(value(name, "input", reasons.given(name)))
        else:
            values.append(value(name, "saved", reasons.saved(name)))
    again = [node.name for node in backward.nodes if _computed_twice(node, in_forward)]
    values += [value(name, "recomputed", reasons.recomputed(name)) for name in again]
    return Partition(
        compile_id=joint.compile_id,
        joint=joint.id,
        forward=forward.id,
        backward=backward.id,
        values=tuple(values),
        saved_bytes=_total(values),
        recomputed=len(again),
        drawn_again=tuple(drawn_again(map(reasons.nodes.__getitem__, again))),
        partitioner=split.partitioner,
        cut_value=reasons.cut.value if reasons.cut is not None else None,
    )


def _total(values: list[SavedValue]) -> int | None:
    """Total size of the saved tensors in bytes; None if one is symbolic."""
    total = 0
    for item in values:
        if item.choice == "saved" and item.tensor is not None:
            if item.bytes is None:
                return None
            total += item.bytes
    return total


def _computed_twice(node: Node, in_forward: dict[str, Node]) -> bool:
    """Whether a node counts as rematerialised, by torch's own count: a `call_function` of the same
    name on both sides."""
    twin = in_forward.get(node.name)
    return node.op == "call_function" and twin is not None and twin.op == "call_function"


def install(recorder: Recorder) -> Uninstall:
    import networkx
    import torch._functorch.partitioners as partitioners

    safely = Safely(recorder, HOOK.name)
    solve_min_cut = partitioners.solve_min_cut
    extract = partitioners._extract_fwd_bwd_modules
    # torch 2.15 has its own minimum cut, which takes the same network
    solver = partitioners if hasattr(partitioners, "minimum_cut") else networkx

    def solve(*args: Any, **kwargs: Any) -> Any:
        split = current_split()
        if split is None:
            return solve_min_cut(*args, **kwargs)
        minimum_cut = solver.minimum_cut
        found: list[tuple[Any, float | None]] = []

        def watched(network: Any, *rest: Any, **named: Any) -> Any:
            result = minimum_cut(network, *rest, **named)
            found.append((network, result[0]))
            return result

        with during(patch(solver, "minimum_cut", watched)):
            result = solve_min_cut(*args, **kwargs)
        if found:
            cut = safely(read_cut, *found[-1], result[0])
            if cut is not None:
                split.cuts.append(cut)
        return result

    def extracted(
        joint_module: Any, saved_values: Any, saved_sym_nodes: Any, *args: Any, **kwargs: Any
    ) -> Any:
        halves = extract(joint_module, saved_values, saved_sym_nodes, *args, **kwargs)
        split = current_split()
        if split is not None and split.joint in (None, joint_module):
            split.joint = joint_module
            split.extraction = Extraction(
                saved=list(saved_values),
                static=kwargs.get("static_lifetime_input_nodes"),
                outputs=kwargs.get("num_fwd_outputs", 0),
            )
        return halves

    return undo_all(
        patch(partitioners, "solve_min_cut", solve),
        patch(partitioners, "_extract_fwd_bwd_modules", extracted),
    )


HOOK = RecordingHook(
    name="partition",
    offers="what is saved for the backward or computed again, with torch's reason",
    needs=(
        "torch._functorch.partitioners:solve_min_cut(joint_graph, node_info)",
        "torch._functorch.partitioners:_extract_fwd_bwd_modules(joint_module, saved_values, "
        "saved_sym_nodes, num_fwd_outputs)",
        "torch._functorch.partitioners:must_recompute",
        "torch._functorch.partitioners:get_default_op_list",
        "torch.utils.checkpoint:CheckpointPolicy.MUST_SAVE",
        "networkx:minimum_cut",
    ),
    install=install,
    stage="autograd",
    test="autograd/test_partition.py",
)
