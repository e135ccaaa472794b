"""Fifty training steps of a small GPT-2: the losses are eager's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tcw.compiler.engine.backend import backend

STEPS = 50


def losses(mode: str | None, compiled: bool) -> list[float]:
    transformers = pytest.importorskip("transformers")
    torch._dynamo.reset()
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=1021, n_positions=128, n_embd=256, n_layer=4, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).cuda()
    run: Any = torch.compile(model, backend=backend, mode=mode) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, 1021, (STEPS, 8, 128), device="cuda")
    tokens[:, :, 1::2] = tokens[:, :, ::2]  # something to learn
    found = []
    for batch in tokens:
        loss = run(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_the_losses_of_fifty_steps(monkeypatch: pytest.MonkeyPatch, mode: str | None) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")
    expected, found = losses(None, compiled=False), losses(mode, compiled=True)
    worst = max(abs(a - b) / a for a, b in zip(expected, found, strict=True))
    print(f"{mode}: {expected[0]:.4f} to {expected[-1]:.4f}, worst difference {worst:.1e}")
    assert expected[-1] < 0.9 * expected[0]
    assert worst < 2e-3
