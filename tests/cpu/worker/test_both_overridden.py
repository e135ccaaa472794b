"""Both engines under one file of overrides: each takes its own, and what neither has is told."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace.records import Decided, Warned
from tcw.viewers.recording import Recording
from tests.cpu.worker.recorded import recorded

MODEL = """
import torch

def model(x):
    return torch.tanh(torch.softmax(x, -1)).sum(0)

example_inputs = (torch.randn(16, 32, requires_grad=True),)
"""
FUSED = "inductor/0/0/forward/fuse/amax+exp"
SAVED = "tcw/0/0/joint/save/exp"


def compiled(folder: Path, **settings: object) -> Recording:
    found = recorded(folder, MODEL, until="codegen", grad="train", **settings).recording
    assert found.failure is None
    return found


def test_each_engine_takes_its_own_overrides_and_only_what_is_nowhere_is_told(
    tmp_path: Path,
) -> None:
    unknown = "tcw/0/0/forward/fuse/amx+exp"
    wanted = {FUSED: "apart", SAVED: "recompute", unknown: "apart"}
    both = compiled(tmp_path, engine="both", overrides=wanted)
    taken = {
        engine: {decided.id for decided in part.all(Decided) if decided.id in wanted}
        for engine, part in both.engines.items()
    }
    assert taken == {"inductor": {FUSED}, "tcw": {SAVED}}
    (told,) = both.all(Warned)
    assert told.message.startswith(f"override {unknown} met no decision; the closest is tcw/")
    alone = compiled(tmp_path, engine="inductor", overrides={SAVED: "recompute"})
    assert [warned.message for warned in alone.all(Warned)] == [
        f"override {SAVED} met no decision; it is about the tcw engine"
    ]
