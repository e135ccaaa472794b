"""The short way from a compiled forward to its backward does what torch's long one does."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo import compiled_autograd
from torch._functorch._aot_autograd.runtime_wrappers import RuntimeWrapper

from tcw.compiler.engine import autograd_function
from tcw.compiler.engine.backend import backend

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(
    bool(autograd_function.HOOK.missing()), reason="not available in this torch"
)


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls that torch's own methods served, of functions that have a short way."""
    counter: Counter[str] = Counter()
    real = autograd_function._shorten

    def counted(function: Any, metadata: Any, *, disable_amp: bool) -> None:
        counter["functions"] += 1
        for name in ("forward", "backward"):
            setattr(function, name, staticmethod(_counted(getattr(function, name), counter, name)))
        real(function, metadata, disable_amp=disable_amp)

    monkeypatch.setattr(autograd_function, "_shorten", counted)
    return counter


def _counted(method: Callable[..., Any], found: Counter[str], name: str) -> Callable[..., Any]:
    def counting(*arguments: Any) -> Any:
        found[name] += 1
        return method(*arguments)

    return counting


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def product(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x * w)


def leaves(*shape: int) -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(shape, requires_grad=True) for _ in range(2)]


def gradients(function: Callable[..., Any], tangent: Tensor, *inputs: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(function(*inputs), inputs, tangent))


def equal(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other)


def test_only_the_first_backward_goes_the_long_way(long_ways: Counter[str]) -> None:
    compiled, inputs = torch.compile(product, backend=backend), leaves(5, 7)
    tangent = torch.randn(5, 7)
    for _ in range(3):
        equal(gradients(compiled, tangent, *inputs), gradients(product, tangent, *inputs))
    assert long_ways == {"functions": 1, "backward": 1}, "the first backward compiles its graph"


def test_torch_is_as_before(long_ways: Counter[str]) -> None:
    before = RuntimeWrapper.post_compile
    gradients(torch.compile(product, backend=backend), torch.ones(2, 2), *leaves(2, 2))
    assert RuntimeWrapper.post_compile is before
    gradients(torch.compile(product, backend="aot_eager"), torch.ones(2, 2), *leaves(2, 2))
    assert long_ways["functions"] == 1


@pytest.mark.parametrize(
    "tangent",
    [
        torch.ones(()).expand(6, 8),
        torch.randn(8, 6).t(),
        torch.randn(6, 16)[:, ::2],
    ],
    ids=["expanded", "transposed", "strided"],
)
def test_gradients_of_any_layout(tangent: Tensor) -> None:
    compiled, inputs = torch.compile(product, backend=backend), leaves(6, 8)
    for _ in range(2):
        equal(gradients(compiled, tangent, *inputs), gradients(product, tangent, *inputs))


def test_a_second_backward(long_ways: Counter[str]) -> None:
    compiled, inputs = torch.compile(product, backend=backend), leaves(4, 4)
    gradients(compiled, torch.ones(4, 4), *inputs)
    result = compiled(*inputs)
    kept = [
        torch.autograd.grad(result.sum(), inputs, retain_graph=keep) for keep in (True, True, False)
    ]
    equal(list(kept[0]), list(kept[2]))
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(result.sum(), inputs)
    result = compiled(*inputs)
    first = torch.autograd.grad(result.sum(), inputs, create_graph=True)
    assert first[0].requires_grad
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        torch.autograd.grad(first[0].sum(), inputs)


def test_what_was_saved_may_not_change() -> None:
    compiled, inputs = torch.compile(product, backend=backend), leaves(4, 4)
    gradients(compiled, torch.ones(4, 4), *inputs)
    result = compiled(*inputs)
    with torch.no_grad():
        inputs[0].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def several(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    y = torch.relu(x @ w)
    return y.reshape(-1), y.argmax(-1), torch.sigmoid(y), 3


def test_outputs_without_a_gradient(long_ways: Counter[str]) -> None:
    compiled, inputs = torch.compile(several, backend=backend), leaves(6, 6)
    for _ in range(2):
        flat, places, sigmoid, number = compiled(*inputs)
        assert (flat.requires_grad, places.requires_grad, sigmoid.requires_grad) == (True, 0, True)
        assert number == 3
        found = torch.autograd.grad(sigmoid.sum(), inputs)
        equal(list(found), list(torch.autograd.grad(several(*inputs)[2].sum(), inputs)))
    assert long_ways["functions"] == 1
    assert long_ways["forward"] == 0


def test_a_reshaped_result_can_be_changed() -> None:
    def flattened(x: Tensor, w: Tensor) -> Tensor:
        return (x * w).reshape(-1)

    compiled, inputs = torch.compile(flattened, backend=backend), leaves(6, 6)
    for function in (flattened, compiled, compiled):
        flat = function(*inputs)
        flat.mul_(2)
        found = torch.autograd.grad(flat.sum(), inputs)
        torch.testing.assert_close(found[0], 2 * inputs[1].detach())


@pytest.mark.parametrize("outside", [False, True])
def test_autocast(outside: bool, long_ways: Counter[str]) -> None:
    def layer(x: Tensor, w: Tensor) -> Tensor:
        return torch.relu(x @ w).float().sum(-1)

    results = []
    for engine in ("aot_eager", backend):
        torch._dynamo.reset()
        compiled, inputs = torch.compile(layer, backend=engine), leaves(16, 16)
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                result = compiled(*inputs).sum()
                if outside:
                    found = torch.autograd.grad(result, inputs)
            if not outside:
                found = torch.autograd.grad(result, inputs)
        results.append(list(found))
    torch.testing.assert_close(results[0], results[1], rtol=2e-2, atol=2e-2)
    assert long_ways == {"functions": 1, "backward": 1}


def test_hooks_on_saved_tensors_see_what_torch_shows_them() -> None:
    seen: dict[str, list[tuple[int, ...]]] = {}
    for name, engine in (("torch", "aot_eager"), ("ours", backend)):
        torch._dynamo.reset()
        compiled, inputs = torch.compile(product, backend=engine), leaves(3, 9)
        gradients(compiled, torch.ones(3, 9), *inputs)
        shapes: list[tuple[int, ...]] = []

        def pack(tensor: Tensor, shapes: list[tuple[int, ...]] = shapes) -> Tensor:
            shapes.append(tuple(tensor.shape))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one):
            gradients(compiled, torch.ones(3, 9), *inputs)
        seen[name] = shapes
    assert seen["ours"] == seen["torch"]


def test_a_backward_that_was_not_compiled_deterministic() -> None:
    compiled, inputs = torch.compile(product, backend=backend), leaves(4, 4)
    gradients(compiled, torch.ones(4, 4), *inputs)
    result = compiled(*inputs)
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="deterministic"):
            result.sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)


def test_sizes_that_change(long_ways: Counter[str]) -> None:
    compiled = torch.compile(product, backend=backend, dynamic=True)
    for size in (3, 5, 8):
        inputs, tangent = leaves(size, 4), torch.randn(size, 4)
        equal(gradients(compiled, tangent, *inputs), gradients(product, tangent, *inputs))


def test_mutated_inputs_go_the_long_way(long_ways: Counter[str]) -> None:
    def counting(x: Tensor, w: Tensor) -> Tensor:
        y = x.clone()
        y.mul_(w)
        return y

    def changing(x: Tensor, w: Tensor) -> Tensor:
        x.mul_(2)
        return x * w

    compiled, inputs = torch.compile(counting, backend=backend), leaves(4, 4)
    equal(
        gradients(compiled, torch.ones(4, 4), *inputs),
        gradients(counting, torch.ones(4, 4), *inputs),
    )
    assert long_ways["functions"] == 1
    x, w = leaves(4, 4)
    torch.compile(changing, backend=backend)(x * 1, w).sum().backward()
    assert long_ways["functions"] == 1
    torch.testing.assert_close(w.grad, 2 * x.detach())


def test_a_fresh_process_knows_the_hook() -> None:
    code = "from tcw.compiler.engine.autograd_function import HOOK; print(HOOK.missing())"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert process.stdout == f"{autograd_function.HOOK.missing()}\n"


def test_compiled_autograd() -> None:
    compiled, inputs = torch.compile(product, backend=backend), leaves(4, 4)
    expected = gradients(product, torch.ones(4, 4), *inputs)
    equal(gradients(compiled, torch.ones(4, 4), *inputs), expected)
    with compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        result = compiled(*inputs)
        result.sum().backward()
    equal([one.grad for one in inputs if one.grad is not None], expected)
