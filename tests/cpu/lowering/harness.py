"""Lowers a function as the engine does, verifies and interprets the result, and compares it with
eager."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from functorch.compile import aot_function
from torch import fx
from torch._functorch import config as functorch_config
from torch.utils import _pytree as pytree

from tcw.compiler.loops.graph import Call, Graph
from tcw.compiler.loops.interpreter import run_graph
from tcw.compiler.loops.verifier import verify_graph
from tcw.compiler.lowering.driver import lower
from tcw.compiler.rewrites.decompositions import decompositions


@contextmanager
def settings_of_aot() -> Iterator[None]:
    """AOTAutograd's settings while a function is traced and interpreted; another torch lacks some.

    In the first call torch would look at every operation of the interpreter, for custom ones that
    return an argument: a fifth of the time. There are none.
    """
    wanted = {"unlift_effect_tokens": True, "check_custom_op_aliasing": False}
    known = {name: value for name, value in wanted.items() if hasattr(functorch_config, name)}
    with functorch_config.patch(known):
        yield


@dataclass
class Lowered:
    """The graphs of one function, in the order of compilation."""

    graphs: list[Graph] = field(default_factory=list)
    modules: list[fx.GraphModule] = field(default_factory=list)

    def run(self, graph: int, arguments: Sequence[Any]) -> list[Any]:
        """The results of a graph for other arguments."""
        found, module = self.graphs[graph], self.modules[graph]
        return run_graph(found, arguments, constants_of(found, module))

    def calls(self) -> list[str]:
        """Targets of the calls: `aten.mm.default`."""
        return [n.target for g in self.graphs for n in g.nodes if isinstance(n, Call)]

    def fallbacks(self) -> list[str]:
        """The reasons of the calls that lack a lowering."""
        return [n.reason for g in self.graphs for n in g.nodes if isinstance(n, Call) and n.reason]

    def kinds(self, graph: int = 0) -> list[str]:
        """The kinds of the nodes of a graph, without its inputs: `["Map", "Reduce"]`."""
        names = [type(node).__name__ for node in self.graphs[graph].nodes]
        return [name for name in names if name != "Input"]


def lowered(
    fn: Callable[..., Any],
    *args: Any,
    dynamic: bool = False,
    strides: bool = True,
    calls: Sequence[str] | None = (),
    atol: float | None = None,
    rtol: float | None = None,
) -> Lowered:
    """The function's graphs, after checking that they give eager's results: values, dtypes, shapes,
    strides, the arguments afterwards, and gradients if an argument requires them.

    `calls` are the operations that may be left to ATen (their names without namespace and
    overload); None: any. Raises AssertionError.
    """
    result = Lowered()

    def compiler(module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        graph = lower(module, f"graph{len(result.graphs)}")
        verify_graph(graph)
        result.graphs.append(graph)
        result.modules.append(module)

        def run(boxed: list[Any]) -> list[Any]:
            arguments = list(boxed)
            boxed.clear()
            return run_graph(graph, arguments, constants_of(graph, module))

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    differentiable = any(
        isinstance(a, torch.Tensor) and a.requires_grad for a in pytree.tree_leaves(args)
    )
    mine, theirs = _copied(args), _copied(args)
    with (
        torch.set_grad_enabled(differentiable),
        settings_of_aot(),
    ):
        compiled = aot_function(
            fn,
            fw_compiler=compiler,
            bw_compiler=compiler,
            decompositions=decompositions(),
            keep_inference_input_mutations=True,
            dynamic=dynamic,
        )
        torch.default_generator.manual_seed(7)  # torch.manual_seed notes the stack for each GPU
        expected = fn(*theirs)
        torch.default_generator.manual_seed(7)
        answer = compiled(*mine)
    close = {"atol": atol, "rtol": rtol}
    _compare(answer, expected, "output", strides=strides, **close)
    _compare(mine, theirs, "argument", strides=strides, **close)
    if differentiable:
        _backward(answer), _backward(expected)
        _compare(_gradients(mine), _gradients(theirs), "gradient", strides=False, **close)
    if calls is not None:
        others = {c.split(".")[1] for c in result.calls()} - set(calls)
        assert not others, f"left to ATen: {sorted(others)}, {result.fallbacks()}"
    return result


def constants_of(graph: Graph, module: fx.GraphModule) -> dict[str, Any]:
    """The tensors of a graph's constant inputs."""
    return {name: operator.attrgetter(path)(module) for name, path in graph.constants.items()}


def _copied(args: Any) -> Any:
    """Copies of the arguments with the same strides and offsets."""

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return copy.copy(value)
        storage = value.detach().untyped_storage().clone()
        made = torch.empty(0, dtype=value.dtype).set_(
            storage, value.storage_offset(), value.shape, value.stride()
        )
        return made.requires_grad_(value.requires_grad)

    return pytree.tree_map(one, args)


def _leaves(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _backward(tree: Any) -> None:
    outputs = [leaf for leaf in _leaves(tree) if leaf.requires_grad]
    generator = torch.Generator().manual_seed(5)
    seeds = [
        torch.randn(leaf.shape, generator=generator, dtype=torch.float64).to(leaf.dtype)
        for leaf in outputs
    ]
    torch.autograd.backward(outputs, seeds)


def _gradients(tree: Any) -> list[torch.Tensor | None]:
    return [leaf.grad for leaf in _leaves(tree)]


def _compare(
    answer: Any, expected: Any, what: str, *, strides: bool, atol: float | None, rtol: float | None
) -> None:
    ours, theirs = pytree.tree_leaves(answer), pytree.tree_leaves(expected)
    assert len(ours) == len(theirs), f"{len(ours)} {what}s, not {len(theirs)}"
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        where = f"{what} {place}"
        if not isinstance(b, torch.Tensor):
            assert a == b, f"{where}: {a}, not {b}"
            continue
        assert a.dtype == b.dtype, f"{where}: {a.dtype}, not {b.dtype}"
        assert a.shape == b.shape, f"{where}: {a.shape}, not {b.shape}"
        if strides and b.numel():
            moving = [d for d, size in enumerate(b.shape) if size > 1]
            found = [a.stride(d) for d in moving]
            assert found == [b.stride(d) for d in moving], (
                f"{where}: strides {a.stride()}, not {b.stride()}"
            )
        torch.testing.assert_close(
            a, b, atol=atol, rtol=rtol, equal_nan=True, msg=lambda text, w=where: f"{w}: {text}"
        )
