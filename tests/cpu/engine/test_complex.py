"""Complex numbers: their operations are ATen calls, and the graph is ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.engine.backend import backend
from tcw.compiler.rewrites.complex_scatters import complex_scatters
from tcw.compiler.rewrites.decompositions import decompositions
from tcw.compiler.rewrites.subject import Subject

aten = torch.ops.aten

pytestmark = pytest.mark.usefixtures("nothing_left_to_aten")

CONJUGATES: dict[str, Callable[[Tensor], Tensor]] = {
    "product": lambda z: z.mH @ z,
    "answered": lambda z: z.conj() * 2,
    "view": lambda z: z.t().conj(),
    "twice": lambda z: z.conj().conj() + 1,
    "imaginary": lambda z: z.conj().imag.relu(),
    "imaginary view": lambda z: z.conj().imag,
    "resolved": lambda z: torch.view_as_real(z.conj().resolve_conj()).sin(),
}


@pytest.mark.parametrize("given", ["plain", "conjugate", "transposed"])
@pytest.mark.parametrize("name", CONJUGATES)
def test_conjugates(name: str, given: str) -> None:
    z = torch.randn(4, 4, dtype=torch.cfloat)
    z = {"plain": z, "conjugate": z.conj(), "transposed": z.t()}[given]
    compiled = torch.compile(CONJUGATES[name], backend=backend)
    torch.testing.assert_close(compiled(z), CONJUGATES[name](z))


BACKWARDS: dict[str, Callable[[Tensor], Tensor]] = {
    "rotary": lambda x: torch.view_as_real(
        torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones(4), torch.ones(4))
    ),
    "spectrum": lambda x: torch.fft.irfft(torch.fft.rfft(x) * torch.tensor([1, 1j, 2, 1j, 0])),
    "power": lambda x: torch.log1p(torch.fft.rfft(x).abs() ** 2),
}


@pytest.mark.parametrize("name", BACKWARDS)
def test_gradients_are_conjugate_products(name: str) -> None:
    x = torch.randn(3, 8, requires_grad=True)

    def gradient(function: Callable[[Tensor], Tensor]) -> Tensor:
        (found,) = torch.autograd.grad(function(x).square().sum(), x)
        return found

    compiled = torch.compile(BACKWARDS[name], backend=backend)
    torch.testing.assert_close(gradient(compiled), gradient(BACKWARDS[name]))


def modes(x: Tensor, weight: Tensor) -> Tensor:
    """A layer of a Fourier neural operator: low frequencies alone are multiplied."""
    found = torch.fft.rfft2(x)
    out = torch.zeros(*x.shape[:-1], x.shape[-1] // 2 + 1, dtype=torch.cfloat)
    out[:, :3, :2] = found[:, :3, :2] * weight
    out[:, -3:, :2] = found[:, -3:, :2] * weight
    return torch.fft.irfft2(out, s=x.shape[-2:])


def calls(function: Callable[..., Tensor], *inputs: Tensor) -> list[str]:
    """The operations that write a slice of a complex tensor, after the pass."""
    module = make_fx(torch.func.functionalize(function), tracing_mode="fake")(*inputs)
    complex_scatters(Subject(module, graph="0/0/inference"))
    names = [str(node.target) for node in module.graph.nodes if node.op == "call_function"]
    written = (
        "aten.copy.",
        "aten.full.",
        "aten.zeros.",
        "aten.slice_scatter.",
        "aten.constant_pad",
    )
    return [name for name in names if name.startswith(written)]


def padded(z: Tensor, start: int, end: int, step: int = 1) -> Tensor:
    out = torch.full((4, 6), 2 - 1j, dtype=z.dtype)
    out[:, start:end:step] = z
    return out


def test_a_slice_of_a_constant_is_one_pad() -> None:
    z = torch.randn(4, 3, dtype=torch.cfloat)
    for bounds in ((0, 3), (2, 5), (-3, 6)):
        assert calls(partial(padded, start=bounds[0], end=bounds[1]), z) == [
            "aten.constant_pad_nd.default"
        ]
        compiled = torch.compile(padded, backend=backend, dynamic=False)
        torch.testing.assert_close(compiled(z, *bounds), padded(z, *bounds))
    apart = calls(partial(padded, start=0, end=6, step=2), z)
    assert apart == ["aten.full.default", "aten.slice_scatter.default"]


def test_gradients_of_assigned_slices() -> None:
    x, weight = torch.randn(2, 8, 8, requires_grad=True), torch.randn(3, 2, dtype=torch.cfloat)
    given = (x, weight.requires_grad_())
    compiled = torch.compile(modes, backend=backend)
    found = torch.autograd.grad(compiled(*given).square().sum(), given)
    torch.testing.assert_close(found, torch.autograd.grad(modes(*given).square().sum(), given))
    assert "aten.copy.default" not in calls(modes, x.detach(), weight.detach())


def test_a_conjugate_is_not_copied_again() -> None:
    def conjugate(z: Tensor) -> tuple[Tensor, Tensor]:
        clone = aten.clone(aten._conj(z))
        return aten.alias(clone) * z, torch.view_as_real(aten.clone(z * 2))

    z = torch.randn(4, 3, dtype=torch.cfloat)
    module = make_fx(conjugate, tracing_mode="fake")(z)
    assert complex_scatters(Subject(module, graph="0/0/inference")) == 2
    module.recompile()
    left = [node.args[0].target for node in module.graph.nodes if node.target is aten.clone.default]
    assert left == [aten.mul.Tensor], "a view of the copy is a result"
    torch.testing.assert_close(module(z), conjugate(z))


def test_complex_operations_stay_whole() -> None:
    """Each of the pieces of an operation on complex numbers would be a call."""
    table = decompositions()
    z = torch.randn(4, dtype=torch.cfloat)
    found = make_fx(lambda x: x.sgn(), decomposition_table=table, tracing_mode="fake")
    assert [n.target for n in found(z).graph.nodes if n.op == "call_function"] == [aten.sgn.default]
    assert aten.sgn.default not in [node.target for node in found(z.real).graph.nodes]

    def turned(length: Tensor, angle: Tensor) -> Tensor:
        return torch.polar(length, angle)

    given = (torch.rand(4, 3, requires_grad=True), torch.rand(4, 3, requires_grad=True))
    weight = torch.randn(4, 3, dtype=torch.cfloat)
    compiled = torch.compile(turned, backend=backend)
    grads = torch.autograd.grad(compiled(*given), given, weight)
    torch.testing.assert_close(grads, torch.autograd.grad(turned(*given), given, weight))
