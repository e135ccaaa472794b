"""The records of the real compile are the same with a prediction beside it, which has separate
ids."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch

from tcw.compiler import pipeline
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.trace.records import Settings
from tcw.compiler.trace.writer import TraceWriter
from tests.cpu.inductor.predictions import train

pytestmark = pytest.mark.long
ARCH = "sm_90"
TIMED = ("phase", "progress", "frame-start", "frame-end", "source", "cache-lookup")


def recorded(device: str) -> list[dict[str, Any]]:
    """Every record of one training step of a small network, with texts instead of their hashes."""
    torch.manual_seed(0)
    layer, norm = torch.nn.Linear(16, 24), torch.nn.LayerNorm(24)
    lines: list[bytes] = []
    settings = Settings(file=__file__, device=device, arch=ARCH if device == "cuda" else "")
    recorder = Recorder(writer=TraceWriter(lines.append), settings=settings)
    torch._dynamo.reset()
    with (
        torch._inductor.config.patch(force_disable_caches=True),
        pipeline.recording(recorder) as statuses,
    ):
        assert [status.reason for status in statuses if not status.available] == []
        train(torch.compile(lambda x: torch.softmax(norm(layer(x)), -1)), torch.randn(4, 16))
    torch._dynamo.reset()
    records = [json.loads(line) for line in lines]
    texts = {each["hash"]: each["body"] for each in records if each["record"] == "text"}
    return [
        {key: texts.get(value, value) if isinstance(value, str) else value for key, value in items}
        for items in (each.items() for each in records if each["record"] != "text")
    ]


@pytest.fixture(scope="module")
def alone() -> list[dict[str, Any]]:
    return recorded("cpu")


@pytest.fixture(scope="module")
def beside() -> list[dict[str, Any]]:
    return recorded("cuda")


def predicted(record: dict[str, Any]) -> bool:
    named = f"{record.get('graph', '')} {record.get('id', '')}"
    return f"@{ARCH}" in named or record["record"] == "kernel-binary"


def comparable(record: dict[str, Any]) -> str:
    """Without times, and without numbers that count through the process or the trace."""
    kept = {k: v for k, v in record.items() if k not in ("at", "seconds", "check_us")}
    if record["record"] == "kernel":
        del kept["id"]
    text = json.dumps(kept, sort_keys=True)
    text = re.sub(r"# AOT ID: [^\\]*|\bk\d+\b|\b(0x[0-9a-f]+|\d{9,})\b", "", text)
    return re.sub(r'"id": \d+, ', "", text)


def test_the_real_compile_is_recorded_as_without(
    alone: list[dict[str, Any]], beside: list[dict[str, Any]]
) -> None:
    real = [each for each in beside if not predicted(each) and each["record"] not in TIMED]
    without = [each for each in alone if each["record"] not in TIMED]
    assert [comparable(each) for each in real] == [comparable(each) for each in without]


def test_the_prediction_is_recorded_as_a_compile_of_its_own(beside: list[dict[str, Any]]) -> None:
    kinds = {each["record"] for each in beside if predicted(each)}
    assert {"graph", "lowered", "scheduler-node", "fusion-groups", "kernel", "wrapper"} <= kinds
    kernels = {
        each["id"]: each
        for each in beside
        if each["record"] == "kernel" and each["language"] == "triton"
    }
    assert kernels
    assert all(each["predicted"] and predicted(each) for each in kernels.values())
    binaries = [each for each in beside if each["record"] == "kernel-binary"]
    assert [each["kernel"] for each in binaries] == list(kernels)
    for binary in binaries:
        assert f"def {kernels[binary['kernel']]['name']}(" in kernels[binary["kernel"]]["text"]
        assert kernels[binary["kernel"]]["name"] in binary["ptx"]


def test_the_prediction_is_a_phase_of_its_own(beside: list[dict[str, Any]]) -> None:
    phases = [each for each in beside if each["record"] == "phase"]
    assert len([each for each in phases if each["name"] == f"predict {ARCH}"]) == 2


def test_no_cache_is_asked_for_a_prediction(
    alone: list[dict[str, Any]], beside: list[dict[str, Any]]
) -> None:
    asked = [
        [each["cache"] for each in records if each["record"] == "cache-lookup"]
        for records in (alone, beside)
    ]
    assert asked[0] == asked[1]


def test_its_time_is_not_the_compiles(beside: list[dict[str, Any]]) -> None:
    predicting = [
        each["seconds"]
        for each in beside
        if each["record"] == "phase" and each["name"] == f"predict {ARCH}"
    ]
    whole = next(each for each in beside if each.get("name") == "entire_frame_compile")
    (start,) = (each for each in beside if each["record"] == "frame-start")
    (end,) = (each for each in beside if each["record"] == "frame-end")
    passed = end["at"] - start["at"]
    assert end["seconds"] < passed - 0.9 * predicting[0]
    assert whole["seconds"] < passed - 0.9 * predicting[0]
