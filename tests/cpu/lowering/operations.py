"""The op database that ships in torch, through AOTAutograd, our lowering and the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from functorch.compile import aot_function
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from compiler.engine.decompositions import decompositions
from compiler.loops.graph import Call
from compiler.loops.interpreter import run_graph
from compiler.loops.verifier import verify_graph
from compiler.lowering.driver import lower
from compiler.lowering.registry import Unsupported
from tests.cpu.lowering.harness import constants_of

DTYPES = (
    *(torch.float32, torch.float64, torch.bfloat16, torch.float16),
    *(torch.int64, torch.bool),
)
UNTRACEABLE = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)
"""What torch's own tracing says where Dynamo would break the graph."""
UNDEFINED = frozenset(
    ["empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"]
)
"""Operations whose answer is whatever the memory held."""


@dataclass
class Outcome:
    """What became of one operation with one sample."""

    kind: str
    """`lowered`, `calls` (only what ATen is wanted for), `falls back`, `whole` (the graph runs as
    ATen), `untraceable` (no graph, or nothing to compare)."""
    details: list[str] = field(default_factory=list)


def first_sample(info: Any, dtype: torch.dtype, *, gradients: bool = False) -> Any:
    return next(iter(info.sample_inputs("cpu", dtype, requires_grad=gradients)))


def name_of(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


def _as_function(info: Any, sample: Any) -> tuple[Callable[..., list[Any]], list[torch.Tensor]]:
    """The operation as a function of the sample's tensors alone; it answers a flat list."""
    leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: torch.Tensor) -> list[Any]:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        args, kwargs = pytree.tree_unflatten(given, spec)
        answer: list[Any] = pytree.tree_leaves(info.op(*args, **kwargs))
        return answer

    return function, [leaves[place] for place in places]


def outcome(info: Any, sample: Any, *, gradients: bool = False) -> Outcome:
    """Run one sample and compare it with eager. Raises AssertionError where it differs.

    16-bit results may differ where they are no further from float64's than eager's.
    `gradients`: of the tensors of the sample that require them, too.
    """
    function, tensors = _as_function(info, sample)
    if any(t.layout is not torch.strided or t.dtype.is_complex for t in tensors):
        return Outcome("untraceable", ["sparse or complex"])
    calls: list[Call] = []

    def compiler(module: Any, inputs: Any) -> Callable[..., Any]:
        graph = lower(module, "graph")
        verify_graph(graph)
        calls.extend(node for node in graph.nodes if isinstance(node, Call))

        def run(boxed: list[Any]) -> list[Any]:
            arguments = [_argument(value) for value in boxed]
            boxed.clear()
            return run_graph(graph, arguments, constants_of(graph, module))

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    compiled = aot_function(
        function,
        fw_compiler=compiler,
        bw_compiler=compiler,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    try:
        expected = _answer(function, tensors, gradients)
    except RuntimeError as why:
        return Outcome("untraceable", [f"eager raises {why}"])
    if any(isinstance(o, torch.Tensor) and o.layout is not torch.strided for o in expected):
        return Outcome("untraceable", ["answers a sparse tensor"])
    try:
        _answer(compiled, tensors, gradients)  # tracing draws random numbers
        answer = _answer(compiled, tensors, gradients)
    except UNTRACEABLE as why:
        return Outcome("untraceable", [type(why).__name__])
    except Unsupported as why:
        return Outcome("whole", [str(why)])
    if info.name not in UNDEFINED:
        _compare(answer, expected, function, tensors)
    reasons = sorted({f"{call.target}: {call.reason}" for call in calls if call.reason})
    if reasons:
        return Outcome("falls back", reasons)
    return Outcome("calls" if calls else "lowered", sorted({call.target for call in calls}))


def _argument(value: Any) -> Any:
    """What AOTAutograd passes, without its graph; the token of an effect is None at run time."""
    if value is None:
        return torch.empty(0)
    return value.detach() if isinstance(value, torch.Tensor) else value


def _answer(
    function: Callable[..., list[Any]], tensors: list[torch.Tensor], gradients: bool
) -> list[Any]:
    """Its outputs, and their gradients with random seeds."""
    given = [t.detach().clone().requires_grad_(gradients and t.requires_grad) for t in tensors]
    torch.manual_seed(42)  # as the database's own wrappers of random operations do
    with torch.set_grad_enabled(gradients):
        outputs = list(function(*(t.clone() for t in given) if gradients else given))
    ends = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    starts = [t for t in given if t.requires_grad]
    if not (ends and starts):
        return outputs
    generator = torch.Generator().manual_seed(5)
    seeds = [torch.randn(o.shape, generator=generator, dtype=o.dtype) for o in ends]
    return [*outputs, *torch.autograd.grad(ends, starts, seeds, allow_unused=True)]


def _compare(
    answer: list[Any],
    expected: list[Any],
    function: Callable[..., list[Any]],
    tensors: list[torch.Tensor],
) -> None:
    assert len(answer) == len(expected)
    for place, (ours, theirs) in enumerate(zip(answer, expected, strict=True)):
        if not isinstance(theirs, torch.Tensor):
            assert ours is theirs or ours == theirs or theirs != theirs, (
                f"output {place}: {ours}, not {theirs}"
            )
            continue
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        try:
            torch.testing.assert_close(ours, theirs, equal_nan=True)
        except AssertionError:
            if theirs.dtype.is_floating_point and theirs.dtype.itemsize == 2:
                wide = [t.detach().double() if t.is_floating_point() else t for t in tensors]
                exact = _answer(function, wide, False)[place]
                if _error(ours, exact) <= _error(theirs, exact):
                    continue
            raise


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).abs().nan_to_num().max())
