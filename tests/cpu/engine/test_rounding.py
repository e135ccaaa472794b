"""The user's conversions to 16 bits round, even if the value is widened again; those that end a
decomposition do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tcw.compiler.engine.backend import backend


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_round_trip_is_kept(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")
    x = torch.randn(8, 33)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x * 1.7).to(dtype).float() + 1, torch.softmax(x, -1).to(dtype)

    found = torch.compile(function, backend=backend, fullgraph=True)(x)
    wanted = function(x)
    torch.testing.assert_close(found[0], wanted[0], rtol=0, atol=0)
    torch.testing.assert_close(found[1], wanted[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_a_normalisation_saves_stays_wide(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's decomposition returns its statistics in the dtype of its input; rounding a mean far
    from zero destroys the gradients."""
    monkeypatch.setenv("TCW_STRICT", "1")
    torch.manual_seed(0)
    x = (100 + torch.randn(16, 4, 9)).to(dtype)
    weight, bias, outer = torch.rand(4).to(dtype), torch.rand(4).to(dtype), torch.randn(16, 4, 9)

    def gradients(function: Any, *leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inputs = [leaf.detach().clone().requires_grad_() for leaf in leaves]
        y = function(*inputs)
        return torch.autograd.grad(y, inputs, outer.to(dtype).to(y.dtype))

    def normalised(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True)

    compiled = torch.compile(normalised, backend=backend, fullgraph=True)
    found = gradients(compiled, x, weight, bias)
    wanted = gradients(normalised, x.double(), weight.double(), bias.double())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0.02, atol=0.02)
