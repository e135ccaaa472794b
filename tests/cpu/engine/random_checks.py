"""What is checked of a random program, on a CPU and on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import note
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tcw.compiler.engine.backend import backend
from tests.cpu.engine import random_sizes
from tests.cpu.engine.random_programs import Step, run
from tests.cpu.engine.random_sizes import SizeStep


def inputs(shape: list[int], seed: int, device: str = "cpu") -> list[torch.Tensor]:
    """Three tensors; the last has its dimensions in reverse order in memory."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator)
    y = torch.randn([*shape[:-1], 1], generator=generator)
    z = torch.randn(shape[::-1], generator=generator).to(device)
    return [x.to(device), y.to(device), z.permute(*reversed(range(len(shape))))]


def moving_strides(tensor: torch.Tensor) -> list[int]:
    """The stride of a dimension of one element is meaningless."""
    return [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n != 1]


def close(
    found: list[torch.Tensor], program: list[Step], given: list[torch.Tensor], bound: float
) -> None:
    """The results of a compiled program are eager's. So are their strides, or else those that
    torch's own fake tensors have."""
    wanted = run(program, *given)
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        note(f"output {place}")
        if moving_strides(one) != moving_strides(other) and one.numel() > 1:
            assert moving_strides(one) == moving_strides(traced(program, given)[place])
        torch.testing.assert_close(one, other, rtol=bound, atol=bound)


def traced(program: list[Step], given: list[torch.Tensor]) -> list[torch.Tensor]:
    """Results as torch's compiler traces them. Where an operand is expanded, their strides are not
    always eager's: `tanh(x) * y.unsqueeze(1).expand(1, 2, 8)` is traced as contiguous."""
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        return run(program, *(mode.from_tensor(tensor) for tensor in given))


def forward(
    program: list[Step], shape: list[int], seed: int, *, device: str = "cpu", bound: float = 2e-5
) -> None:
    """Outputs equal eager's, strides too."""
    torch._dynamo.reset()
    given = inputs(shape, seed, device)
    with torch.no_grad():
        compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=False)
        close(compiled(program, *given), program, given, bound)


def backward(
    program: list[Step], shape: list[int], seed: int, *, device: str = "cpu", dynamic: bool = False
) -> None:
    """Gradients equal eager's; if `dynamic`, with symbolic sizes and for two of each."""
    torch._dynamo.reset()
    compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=dynamic)
    for grown in (0, 2) if dynamic else (0,):
        grown_shape = [size + grown if size > 1 else 1 for size in shape]
        _gradients(compiled, program, grown_shape, seed, device)


def _gradients(
    compiled: Any, program: list[Step], shape: list[int], seed: int, device: str
) -> None:
    given = [tensor.requires_grad_() for tensor in inputs(shape, seed, device)]
    if not any(answer.requires_grad for answer in run(program, *given)):
        return

    def gradients(function: Any) -> list[torch.Tensor]:
        total = sum(o.float().square().sum() for o in function(program, *given))
        found = torch.autograd.grad(total, given, allow_unused=True)
        return [g for g in found if g is not None]

    wanted = gradients(run)
    for one, other in zip(gradients(compiled), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max() + 1))


def dynamic_shapes(
    program: list[Step], shape: list[int], seed: int, *, device: str = "cpu", bound: float = 2e-5
) -> None:
    """Outputs equal eager's, with symbolic sizes and for two of each."""
    torch._dynamo.reset()
    compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=True)
    for grown in (0, 2):
        given = inputs([size + grown if size > 1 else 1 for size in shape], seed, device)
        with torch.no_grad():
            close(compiled(program, *given), program, given, bound)


def sizes(program: list[SizeStep], rows: list[int], *, trained: bool) -> None:
    """Outputs, and in training the gradient, equal eager's for each of these sizes, the largest
    first: where the sizes of a program are legal in eager."""
    torch._dynamo.reset()
    compiled: Any = torch.compile(random_sizes.run, backend=backend, dynamic=True)

    def results(function: Any, n: int) -> list[torch.Tensor]:
        x = torch.linspace(-1, 2, n, requires_grad=trained)
        found = function(program, x)
        total = sum(one.float().square().sum() for one in found if one.requires_grad)
        if isinstance(total, torch.Tensor):
            (gradient,) = torch.autograd.grad(total, x, allow_unused=True)
            found += [] if gradient is None else [gradient]
        return [one.detach() for one in found]

    for n in sorted(rows, reverse=True):
        try:
            wanted = results(random_sizes.run, n)
        except (RuntimeError, IndexError, ValueError):
            continue
        for one, other in zip(results(compiled, n), wanted, strict=True):
            largest = float(other.abs().max()) if other.numel() else 0.0
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * (1 + largest))
