"""Runs after each other with torch's caches: what missed, why, and what is behind it.

Each change is planted, and has to be the cause that `tcw diff` names.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.differences.effects import Effect
from tests.cpu.worker.recorded import recorded

pytestmark = pytest.mark.long

MODEL = """
import torch
import torch._dynamo
import torch._inductor.config as config

def outside(x):
    return x + 1

class M(torch.nn.Module):
    def forward(self, x):
        y = torch.softmax(x, -1)
        return (y * 2).sum(-1)

model = M()
example_inputs = (torch.randn(8, 16),)
"""
CHANGES = {
    "a setting": (("model =", "config.max_fusion_size = 7\nmodel ="), {},
                  "torch._inductor.config.max_fusion_size: 64 → 7", 0),
    "a constant": (("y * 2", "y * 3"), {}, "the graph: mul is operator.mul(y, 3)", 12),
    "a size": (("8, 16", "9, 16"), {}, "input x: shape [8, 16] → [9, 16]", 0),
    "an environment variable": (("", ""), {"TORCHINDUCTOR_SPLIT_REDUCTIONS": "0"},
                                "torch._inductor.config.split_reductions: True → False", 0),
}  # fmt: skip


def caches(base: Recording, other: Recording, tone: str) -> list[Effect]:
    effects = difference(base, other).effects
    return [effect for effect in effects if effect.kind == "cache" and effect.tone == tone]


def test_cold_then_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))

    def run(text: str = MODEL) -> Recording:
        return recorded(tmp_path, text, until="run", cached=True).recording

    cold = run()
    warm = run()
    (served,) = caches(cold, warm, "good")
    assert "aot autograd" in served.words
    assert "fx graph" in served.words
    assert "of compiling saved" in served.words
    assert caches(cold, warm, "bad") == []
    for what, ((old, new), environment, because, line) in CHANGES.items():
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            other = run(MODEL.replace(old, new) if old else MODEL)
        missed = caches(cold, other, "bad")
        assert [one.cause for one in missed] == [because], what
        assert missed[0].words.startswith("aot autograd, fx graph"), what
        assert "compiling took" in missed[0].words, what
        assert (missed[0].line.line if missed[0].line else 0) == line, what

    bypassing = MODEL.replace("y = torch", "y = outside(x); y = torch").replace(
        "class M", "torch._dynamo.allow_in_graph(outside)\n\nclass M"
    )
    (bypassed,) = [
        cache
        for cache in caches(cold, run(bypassing), "bad")
        if "aot autograd cache" in cache.words
    ]
    assert "is bypassed" in bypassed.words
    assert "outside" in bypassed.words
