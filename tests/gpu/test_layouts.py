"""Products, convolutions and attention of our engine on a GPU: the library call that suits them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

from tcw.compiler.engine.backend import backend


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")
    torch._dynamo.reset()
    torch.manual_seed(0)


def kernels(call: Any) -> list[str]:
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    ran = [average.key for average in profiled.key_averages() if average.device_time_total > 0]
    return [name for name in ran if not name.startswith("Mem")]


@pytest.mark.parametrize("bias", [True, False])
def test_a_vocabulary_of_odd_size(bias: bool) -> None:
    head = nn.Linear(512, 3001, bias=bias).cuda().bfloat16()
    x = torch.randn(2, 512, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    results = []
    for call in (head, torch.compile(head, backend=backend)):
        y = call(x)
        gradients = torch.autograd.grad(y.float().square().mean(), (x, *head.parameters()))
        results.append((y, *gradients))
    assert results[1][0].stride() == (512 * 3008, 3008, 1), "whole rows of 16 bytes"
    for number, (found, expected) in enumerate(zip(results[1], results[0], strict=True)):
        assert number == 0 or found.stride() == expected.stride()
        scale = expected.abs().max().item()
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2 * scale)


@pytest.mark.parametrize("channels", [3, 16])
def test_convolutions_are_channels_last(channels: int) -> None:
    """The copies of image and weight share a launch; with three channels they are transposed."""
    model = nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, bias=False),
    )
    model = model.cuda().bfloat16()
    x = torch.randn(4, channels, 32, 32, device="cuda", dtype=torch.bfloat16)
    results = []
    for call in (model, torch.compile(model, backend=backend)):
        model.zero_grad()
        y = call(x)
        y.float().square().mean().backward()
        results.append((y.detach(), *(parameter.grad.clone() for parameter in model.parameters())))
    for found, expected in zip(results[1], results[0], strict=True):
        assert found.stride() == expected.stride()
        scale = expected.float().abs().max().item()
        torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2 * scale)


@pytest.mark.parametrize("kind", ["causal", "all true", "window", "padding"])
def test_attention_is_one_fused_kernel(kind: str) -> None:
    def attend(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        where = torch.arange(x.shape[-2], device=x.device)
        rows, columns = where[:, None], where[None, :]
        mask = columns <= rows
        if kind == "all true":
            mask = (rows >= 0) & (columns >= 0)
        if kind == "window":
            mask = mask & (columns > rows - 100)
        if kind == "padding":
            mask = (columns < lengths[:, None, None, None]).expand(-1, 1, x.shape[-2], -1)
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    x = torch.randn(4, 8, 512, 64, device="cuda", dtype=torch.bfloat16)
    lengths = torch.tensor([512, 300, 100, 1], device="cuda")
    function = torch.compile(attend, backend=backend)
    with torch.no_grad():
        torch.testing.assert_close(function(x, lengths), attend(x, lengths), rtol=2e-2, atol=2e-2)
        names = kernels(lambda: function(x, lengths))
    print(kind, names)
    fused = [name for name in names if "flash" in name or "fmha" in name or "attention" in name]
    assert len(fused) == 1, names
    if kind in ("causal", "all true"):
        assert len(names) == 1, names
