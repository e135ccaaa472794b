"""Our engine on a GPU: `torch.compile(model.cuda(), backend="tcw")` against eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree

from tcw.compiler.engine.backend import backend
from tests.cpu.codegen.nest_cases import floats, integers, mixed

Case = tuple[Callable[..., Any], tuple[Any, ...]]


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A graph that our compiler gives up on is an error."""
    monkeypatch.setenv("TCW_STRICT", "1")
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch.cuda.synchronize()


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend=backend, **options)


def same(function: Callable[..., Any], *inputs: Any) -> None:
    expected = pytree.tree_leaves(function(*inputs))
    found = pytree.tree_leaves(compiled(function, dynamic=False)(*inputs))
    for got, want in zip(found, expected, strict=True):
        low = want.dtype in (torch.bfloat16, torch.float16)
        if low and not torch.allclose(got, want, rtol=2e-2, atol=2e-2, equal_nan=True):
            nearer(function, inputs, found, expected)
            return
        close = {"rtol": 2e-2, "atol": 2e-2} if low else {"rtol": 1e-4, "atol": 2e-4}
        torch.testing.assert_close(got, want, equal_nan=True, **close)


def test_graphs_that_differ_in_a_number_keep_their_kernels() -> None:
    """They have the same launches, the first is called again behind the second."""
    x = torch.randn(64, 64, device="cuda")
    twice, thrice = compiled(lambda x: x * 2), compiled(lambda x: x * 3)
    assert torch.equal(twice(x), x * 2)
    assert torch.equal(thrice(x), x * 3)
    assert torch.equal(twice(x), x * 2)


def nearer(
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    found: list[torch.Tensor],
    expected: list[torch.Tensor],
) -> None:
    """Our results are no further from float64's than eager's, which rounds after each step of a
    scan."""
    wide = [
        i.double() if isinstance(i, torch.Tensor) and i.is_floating_point() else i for i in inputs
    ]
    exact = pytree.tree_leaves(function(*wide))
    for got, want, right in zip(found, expected, exact, strict=True):
        error, eager = ((one.double() - right.double()).abs().max() for one in (got, want))
        assert error <= eager


def cases() -> dict[str, Case]:
    """Every form of nest."""
    found = {f"f32 {name}": case for name, case in floats(torch.float32).items()}
    found |= {f"bf16 {name}": case for name, case in floats(torch.bfloat16).items()}
    found |= {f"i64 {name}": case for name, case in integers(torch.int64).items()}
    return found | {f"mixed {name}": case for name, case in mixed().items()}


@pytest.mark.parametrize("name", cases())
def test_nests(name: str) -> None:
    function, inputs = cases()[name]
    same(function, *(i.cuda() if isinstance(i, torch.Tensor) else i for i in inputs))


def norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(4096, 512), (64, 5000), (3, 20000)], ids=str)
def test_gradients(shape: tuple[int, int], dtype: torch.dtype) -> None:
    x = torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)
    w = torch.randn(shape[1], device="cuda", dtype=dtype, requires_grad=True)
    b = torch.randn(shape[1], device="cuda", dtype=dtype, requires_grad=True)
    gradient = torch.randn_like(x)

    def gradients(function: Callable[..., Any]) -> list[torch.Tensor]:
        output = function(x, w, b)
        # autograd compiles and runs the backward on a thread of its own
        return [output.detach(), *torch.autograd.grad(output, (x, w, b), gradient)]

    for got, want in zip(gradients(compiled(norm)), gradients(norm), strict=True):
        scale = want.float().abs().max()
        error = (got.float() - want.float()).abs().max() / scale
        assert error < (2e-2 if dtype == torch.bfloat16 else 1e-5)


def test_memory_that_is_not_aligned() -> None:
    whole = torch.randn(1001, device="cuda")
    function = compiled(lambda x: x.sin() + 1, dynamic=False)
    for start in (0, 1, 3):
        x = whole[start : start + 990]
        torch.testing.assert_close(function(x), x.sin() + 1)


def test_memory_that_is_not_aligned_is_written_too() -> None:
    def add(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    whole = torch.zeros(1001, device="cuda")
    function = compiled(add, dynamic=False)
    for start in (0, 1):
        whole.zero_()
        result = function(whole[start : start + 100])
        assert whole.sum().item() == 100
        assert result.sum().item() == 200


def test_the_current_stream_runs_the_kernels() -> None:
    function = compiled(lambda x: (x * 2).sum(0), dynamic=False)
    x = torch.zeros(4096, 256, device="cuda")
    function(x)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)  # on another stream, the kernels would not wait for it
        x.fill_(1)
        result = function(x)
    side.synchronize()
    assert torch.equal(result, torch.full((256,), 8192.0, device="cuda"))


def test_sizes_change() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.softmax(-1).sum(0) + x.mean()

    function = compiled(f, dynamic=True)
    for rows, columns in ((30, 70), (3, 5000), (1000, 64), (17, 17)):
        x = torch.randn(rows, columns, device="cuda")
        torch.testing.assert_close(function(x), f(x), rtol=1e-4, atol=1e-5)


def test_scratch_memory_is_given_back() -> None:
    x = torch.randn(1 << 22, device="cuda")
    function = compiled(lambda x: x.sum() + x.abs().max(), dynamic=False)
    function(x)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(20):
        function(x)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before + 4096


def test_an_index_out_of_range_is_an_error_on_the_device() -> None:
    """It poisons the context, as eager's does: a process of its own."""
    import subprocess
    import sys

    text = (
        "import torch\n"
        "from tcw.compiler.engine.backend import backend\n"
        "f = torch.compile(lambda t, i: t[i] * 2, backend=backend)\n"
        "t = torch.randn(8, 4, device='cuda')\n"
        "print(f(t, torch.tensor([1, 2], device='cuda')).sum().item() is not None)\n"
        "f(t, torch.tensor([1, 9], device='cuda'))\n"
        "torch.cuda.synchronize()\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert "True" in done.stdout
    assert done.returncode != 0
    assert "device-side assert" in done.stderr
