"""Conversions to 16 bits that the user wrote round, also where the value is widened again."""

from __future__ import annotations

import pytest
import torch

from compiler.engine.backend import backend


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
