"""The kernels of one compiled graph, compared one by one while the graph runs.

Before each step, the values that it reads are copied. After it, the values that it wrote are
compared with the corresponding nodes of the lowered graph, computed from the copies. So an earlier
kernel's error does not count against a later one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import fx

from tcw.compiler.measure.precision import operations
from tcw.compiler.measure.precision.arithmetic import (
    Double,
    Noisy,
    NotComparable,
    Own,
    is_auxiliary,
    unit_of,
)
from tcw.compiler.measure.precision.evaluate import Evaluator
from tcw.compiler.measure.precision.judge import JUMPING, Compared, Verdict, judge
from tcw.compiler.measure.probes.steps import GraphStep
from tcw.compiler.trace.records import OutputPrecision

_SMOOTH = 2
_JUMPS = 4
"""The number of noise samples."""


class BufferContents(Protocol):
    """The contents of the buffers of a graph's code."""

    def nodes(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """The nodes of the lowered graph that these buffers hold: name -> tensor."""
        ...

    def complete(self, step: int) -> Collection[str]:
        """Buffers that a step writes and no later step writes to."""
        ...


@dataclass
class KernelCut:
    """What one kernel computes, cut out of its graph."""

    order: list[fx.Node]
    """Nodes to compute, in order."""
    inputs: dict[fx.Node, Any]
    """The values that the kernel read."""
    results: dict[fx.Node, Any]
    """The kernel's results."""


@dataclass
class StepVerdict:
    """The verdict on one step."""

    step: GraphStep
    outputs: list[OutputPrecision] = field(default_factory=list)
    within: bool | None = None
    reason: str = ""
    cut: KernelCut | None = None
    """Set for the first step outside its bound, and for requested steps."""

    def add(self, node: fx.Node, value: Compared) -> Verdict:
        """Judge one result."""
        verdict = judge(value)
        self.outputs.append(verdict.record(node.name))
        if verdict.within is False:
            self.within = False
        return verdict


class GraphVerifier:
    """Verifies the first run of one compiled graph."""

    def __init__(
        self, module: fx.GraphModule, memory: BufferContents, wanted: Collection[int] = ()
    ) -> None:
        """`wanted`: steps whose cut is always stored."""
        self.module = module
        self.memory = memory
        self.wanted = wanted
        self.verdicts: list[StepVerdict] = []
        self._evaluator = Evaluator(module)
        self._nodes = {node.name: node for node in module.graph.nodes}
        self._known: dict[fx.Node, Any] = {}
        self._read: dict[fx.Node, Any] = {}
        self._sizes = {
            node: str(node.meta["val"])
            for node in module.graph.nodes
            if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.SymInt)
        }
        self._last = -1
        """Index of the last step that was verified: a later run begins again with the first."""
        self._cut = False
        """A wrong step was cut out: storing the values of one is enough."""

    def before(self, step: GraphStep, tensors: Mapping[str, Any]) -> None:
        """A step is about to run."""
        if step.index <= self._last:
            return
        self._read = {}
        for node, value in self._in(tensors).items():
            if node.op == "placeholder":
                # the first value: readers after a write read the writer's node
                self._read[node] = self._known[node] if node in self._known else _copied(value)
            elif node in self._known:
                self._read[node] = _copied(value)
        self._known.update(self._read)
        self._learn_sizes()

    def after(self, step: GraphStep, tensors: Mapping[str, Any]) -> None:
        """The step has run."""
        if step.index <= self._last:
            return
        self._last = step.index
        made = set(self.memory.complete(step.index))
        written = self._in({name: value for name, value in tensors.items() if name in made})
        results = {
            node: _copied(value)
            for node, value in written.items()
            if (argument := _argument(node)) is None
            or made.isdisjoint((argument.name, str(argument.target)))
        }
        verdict = StepVerdict(step)
        compared = _results(results)
        if not compared:
            verdict.reason = (
                "it makes no complete value of the lowered graph; its readers are compared"
            )
        elif self._compare(verdict, compared):
            verdict.within = True
        self._known.update(
            (node, value) for node, value in results.items() if node.op != "placeholder"
        )
        self._read = {}
        self.verdicts.append(verdict)

    def _learn_sizes(self) -> None:
        """Set arguments that are sizes from the shapes of known tensors."""
        if not self._sizes:
            return
        symbols: dict[str, int] = {}
        for node, value in self._known.items():
            expected = node.meta.get("val")
            if isinstance(value, torch.Tensor) and isinstance(expected, torch.Tensor):
                found = zip(map(str, expected.shape), value.shape, strict=True)
                symbols.update((name, size) for name, size in found if name.isidentifier())
        for node, symbol in self._sizes.items():
            if symbol in symbols:
                self._known[node] = symbols[symbol]

    def _in(self, tensors: Mapping[str, Any]) -> dict[fx.Node, Any]:
        plain = {name: value for name, value in tensors.items() if _plain(value)}
        found = self.memory.nodes(plain)
        return {self._nodes[name]: value for name, value in found.items() if name in self._nodes}

    def _compare(self, verdict: StepVerdict, results: dict[fx.Node, Any]) -> bool:
        """Whether all of a step's results are within their bounds, as far as they can be compared;
        the verdict records what cannot, and why."""
        reasons: list[str] = []
        # results of random operations are used as drawn when others are computed from them
        available = dict(self._known)
        for node in results:
            if node.op != "placeholder":
                available.pop(node, None)
        targets: list[fx.Node] = []
        for node in sorted(results, key=self._evaluator.place.__getitem__):
            if node.op == "placeholder":
                argument, observed = self._known.get(node), results[node]
                if argument is not None:  # a copy of it in another layout
                    copy = Compared(observed, argument, argument, narrowest=observed.dtype)
                    verdict.add(node, copy)
                continue
            try:
                self._evaluator.needed([node], available)
                targets.append(node)
            except NotComparable as reason:
                reasons.append(f"{node.name}: {reason}")
                available[node] = results[node]
        if targets:
            try:
                self._judge(verdict, targets, available, results)
            except NotComparable as reason:
                reasons.append(str(reason))
                verdict.outputs.clear()
                verdict.within = None
            except (RuntimeError, MemoryError) as error:
                reasons.append(f"{type(error).__name__}: {str(error)[:200]}")
                verdict.within = None
        compared = bool(verdict.outputs) and verdict.within is None and not verdict.reason
        verdict.reason = verdict.reason or "; ".join(dict.fromkeys(reasons))
        return compared

    def _judge(
        self,
        verdict: StepVerdict,
        targets: list[fx.Node],
        available: dict[fx.Node, Any],
        results: dict[fx.Node, Any],
    ) -> None:
        order, read = self._evaluator.needed(targets, available)
        inputs = {node: available[node] for node in read}
        unread = {node for node in read if node not in self._read}
        wanted = {node: results[node] for node in targets}
        found = compared_values(self._evaluator, order, inputs, wanted, unread)
        judged = [verdict.add(node, value) for node, value in found.items()]
        undecided = dict.fromkeys(one.undecided for one in judged if one.undecided)
        if undecided and verdict.within is None:
            verdict.reason = "; ".join(undecided)
        if verdict.step.index in self.wanted or (verdict.within is False and not self._cut):
            self._cut = self._cut or verdict.within is False
            verdict.cut = KernelCut(order, inputs, wanted)


def compared_values(
    evaluator: Evaluator,
    order: list[fx.Node],
    inputs: Mapping[fx.Node, Any],
    results: Mapping[fx.Node, Any],
    unread: Collection[fx.Node] = (),
) -> dict[fx.Node, Compared]:
    """Each result with what it is judged by: its values in float64, in eager, and with noise. A
    result that is None is eager's own. Raises `NotComparable`."""

    def values(arithmetic: Any) -> dict[fx.Node, Any]:
        found = evaluator.values(order, inputs, arithmetic, unread)
        return {node: found[node] for node in results}

    with torch.no_grad():
        plain = Double()
        exact, eager = values(plain), values(Own())
        noisy = [values(Noisy(seed, held=plain.jumping)) for seed in range(_SMOOTH)]
        jumps = range(_JUMPS if plain.jumping else 0)
        jumping = [values(Noisy(100 + seed, JUMPING)) for seed in jumps]
    may_jump = _after(plain.jumping, order, evaluator)
    narrowest = _narrowest([*order, *inputs])
    return {
        node: Compared(
            eager[node] if observed is None else observed,
            exact[node],
            eager[node],
            [one[node] for one in noisy],
            [one[node] for one in jumping] if node in may_jump else [],
            narrowest,
        )
        for node, observed in results.items()
    }


def _after(
    jumping: Collection[fx.Node], order: list[fx.Node], evaluator: Evaluator
) -> set[fx.Node]:
    """The discontinuous nodes, and everything computed from them."""
    found = set(jumping)
    for node in order:
        sources = (evaluator.read_by(node, source) for source in node.all_input_nodes)
        if not found.isdisjoint(sources):
            found.add(node)
    return found


def _narrowest(nodes: list[fx.Node]) -> torch.dtype:
    dtypes = [
        value.dtype
        for node in nodes
        if isinstance(value := node.meta.get("val"), torch.Tensor) and value.dtype.is_floating_point
    ]
    return max(dtypes, key=unit_of, default=torch.float64)


def _argument(node: fx.Node) -> fx.Node | None:
    """The argument that a node is, or is a view of. If a step writes to an argument, such nodes are
    its old value, not a result of the step."""
    while getattr(node.target, "is_view", False) and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node if node.op == "placeholder" else None


def _results(results: dict[fx.Node, Any]) -> dict[fx.Node, Any]:
    """The results without auxiliary ones and without views of other results."""
    return {
        node: value
        for node, value in results.items()
        if not is_auxiliary(node)
        and not (
            operations.is_view(node.target)
            and any(source in results for source in node.all_input_nodes)
        )
    }


def _plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _copied(value: Any) -> Any:
    return value.detach().clone()
