"""Both engines under one file of overrides: each takes its own, and what neither has is told."""

from __future__ import annotations

from pathlib import Path

from compiler.trace.records import Decided, Settings, Warned
from viewers.recording import Recording
from workbench.worker.client import record

MODEL = """
import torch

def model(x):
    return torch.tanh(torch.softmax(x, -1)).sum(0)

example_inputs = (torch.randn(16, 32, requires_grad=True),)
"""
FUSED = "inductor/0/0/forward/fuse/amax+exp"
SAVED = "tcw/0/0/joint/save/exp"


def recorded(file: Path, **settings: object) -> Recording:
    recording = Recording()
    made = Settings(file=str(file), until="codegen", grad="train", **settings)  # type: ignore[arg-type]
    record(made, trace=None, on_record=lambda one: recording.feed([one]))
    assert recording.failure is None
    return recording


def test_each_engine_takes_its_own_overrides_and_only_what_is_nowhere_is_told(
    tmp_path: Path,
) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    unknown = "tcw/0/0/forward/fuse/amx+exp"
    wanted = {FUSED: "apart", SAVED: "recompute", unknown: "apart"}
    both = recorded(file, engine="both", overrides=wanted)
    taken = {
        engine: {one.id for one in part.all(Decided) if one.id in wanted}
        for engine, part in both.engines.items()
    }
    assert taken == {"inductor": {FUSED}, "tcw": {SAVED}}
    (told,) = both.all(Warned)
    assert told.message.startswith(f"override {unknown} met no decision; the closest is tcw/")
    alone = recorded(file, engine="inductor", overrides={SAVED: "recompute"})
    assert [one.message for one in alone.all(Warned)] == [
        f"override {SAVED} met no decision; it is about the tcw engine"
    ]
