"""Complex numbers: their operations are ATen calls, and the graph is ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compiler.engine.backend import backend

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
