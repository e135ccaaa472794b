"""The first node of a compiled call's graphs that computes a value that eager does not.

An eager call is watched below autograd: each tensor that it computes is kept. Then a graph runs
node by node, and each value is looked up there. What a decomposition makes on the way to its result
is no value of eager's, so what counts is whether a wrong result of the graph comes from a value
without its like in eager, and where the first of these was made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tcw.compiler.graphs.aten_facts import outputs_of, outputs_of_the_user
from tcw.compiler.graphs.current import current_compile_id, graph_id
from tcw.compiler.trace.records.graph import GraphKind

_LIMIT_BYTES = 1 << 30
"""Of the values that are kept of the eager call."""
_NEAREST = 8
"""How many eager values of the same shape are compared with a value, by their sums."""


class OutOfTime(Exception):
    """The seconds for this are over."""


class EagerValues(TorchDispatchMode):  # type: ignore[misc]
    """Every tensor that the calls inside the block compute."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self.deadline = deadline
        self.complete = True
        """Whether there was room for all."""
        self._bytes = 0
        self._values: dict[tuple[Any, ...], list[tuple[float, torch.Tensor]]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        check(self.deadline)
        result = func(*args, **(kwargs or {}))
        self.add(result)
        return result

    def add(self, values: Any) -> None:
        """Keep the tensors in these."""
        for value in _tensors(values):
            self._bytes += value.numel() * value.element_size()
            if self._bytes > _LIMIT_BYTES:
                self.complete = False
                self._values.clear()
                return
            kept = value.detach().clone()
            key = (tuple(kept.shape), kept.dtype)
            self._values.setdefault(key, []).append((_sum(kept), kept))

    def have(self, values: Any, tolerance: float) -> bool:
        """Whether each tensor in `values` is one of these. `tolerance`: relative to its largest
        element."""
        for value in _tensors(values):
            known = self._values.get((tuple(value.shape), value.dtype), [])
            total = _sum(value)
            nearest = sorted(known, key=lambda pair: abs(pair[0] - total))[:_NEAREST]
            if not any(apart(value, other) <= tolerance * largest(other) for _, other in nearest):
                return False
        return True


@dataclass
class GraphRun:
    """One run of one graph."""

    graph: str
    """Its id: `0/0`, `0/0/backward`."""
    module: fx.GraphModule
    user_outputs: int
    """How many of the graph's results are not only saved for the backward."""
    unknown: set[fx.Node] = field(default_factory=set)
    """Nodes whose value eager does not compute."""

    def first_wrong(self) -> fx.Node | None:
        """Of the nodes from which a wrong result comes by such values alone."""
        found = self._leading()
        return next((node for node in self.module.graph.nodes if node in found), None)

    @property
    def wrong(self) -> bool:
        """Whether a result for the user, or what it writes, is no value of eager's."""
        return bool(self._outputs() & self.unknown)

    def _outputs(self) -> set[fx.Node]:
        results = pytree.tree_leaves(outputs_of(self.module))[: self.user_outputs]
        written = [node for node in self.module.graph.nodes if _writes(node)]
        return {result for result in (*results, *written) if isinstance(result, fx.Node)}

    def _leading(self) -> set[fx.Node]:
        found: set[fx.Node] = set()
        pending = list(self._outputs() & self.unknown)
        while pending:
            node = pending.pop()
            if node not in found and node.op != "placeholder":
                found.add(node)
                pending += [source for source in node.all_input_nodes if source in self.unknown]
        return found


class Watch:
    """Runs graphs node by node, and keeps which values eager does not have."""

    def __init__(self, eager: EagerValues, tolerance: float) -> None:
        self.eager = eager
        self.tolerance = tolerance
        self.runs: list[GraphRun] = []

    def of(self, module: fx.GraphModule, kind: GraphKind) -> Callable[..., Any]:
        """What runs this graph, in the compile that is made now."""
        id = current_compile_id()
        graph = id if kind == "captured" else graph_id(id, kind)
        users = outputs_of_the_user(module, kind)

        def run(*args: Any) -> Any:
            self.runs.append(GraphRun(graph, module, users))
            return _Interpreter(module, self).run(*args)

        return run


class _Interpreter(fx.Interpreter):  # type: ignore[misc]
    def __init__(self, module: fx.GraphModule, watch: Watch) -> None:
        super().__init__(module)
        self._watch = watch
        self._run = watch.runs[-1]

    def run_node(self, n: fx.Node) -> Any:
        watch = self._watch
        check(watch.eager.deadline)
        value = super().run_node(n)
        if n.op != "output" and not watch.eager.have(value, watch.tolerance):
            self._run.unknown.add(n)
        return value


def check(deadline: float) -> None:
    """Raises `OutOfTime`."""
    if time.monotonic() > deadline:
        raise OutOfTime


def apart(one: Any, other: Any) -> float:
    """max |a-b|; infinite if they differ in kind, shape, or which elements are finite."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return 0.0 if type(one) is type(other) and one == other else float("inf")
    if one.shape != other.shape or one.layout is not torch.strided:
        return float("inf")
    a, b = _wide(one), _wide(other)
    same = (a == b) | (a.isnan() & b.isnan())
    found = torch.where(same, 0.0, (a - b).abs())
    return float(torch.where(found.isnan(), torch.inf, found).max()) if found.numel() else 0.0


def _writes(node: fx.Node) -> bool:
    """Whether it changes one of its arguments."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.detach().to(torch.complex128 if value.is_complex() else torch.float64)


def _sum(value: torch.Tensor) -> float:
    return float(_wide(value).abs().nan_to_num(0.0, 0.0, 0.0).sum())


def largest(value: Any) -> float:
    """The largest finite size of an element; 0 for what is no tensor, or empty."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return 0.0
    return float(_wide(value).abs().nan_to_num(0.0, 0.0, 0.0).max())


def _tensors(values: Any) -> Iterable[torch.Tensor]:
    return (
        value
        for value in pytree.tree_leaves(values)
        if isinstance(value, torch.Tensor) and value.layout is torch.strided
    )
