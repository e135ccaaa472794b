"""The standard table, made with sizes that a CPU carries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import model_table, table_models, table_row
from tcw.compiler.trace.writer import TraceWriter
from tests.no_torch import profiles

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One row, made by the command."""
    file = tmp_path_factory.mktemp("table") / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "model_table.py"), "--tiny"]
    command += ["--models", "resnet", "--tasks", "inference", "--sides", "default,no_such_backend"]
    done = subprocess.run(
        [*command, "--rounds", "5", "--no-causes", "--json", str(file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| ResNet-50, batch 32 (tiny) | inference |" in done.stdout
    (line,) = file.read_text().splitlines()
    return dict(json.loads(line))


def test_a_row_has_both_sides_of_its_ratio(row: dict[str, Any]) -> None:
    assert row["torch"] == torch.__version__
    side = row["sides"]["default"]
    assert side["ms"] > 0
    assert row["eager"]["ms"] > 0
    assert side["compile_seconds"] > 0
    assert side["noise"] >= 0.01


def test_a_side_that_cannot_run_says_why(row: dict[str, Any]) -> None:
    assert "no_such_backend" in row["sides"]["no_such_backend"]["failed"]


def _row(model: str, task: str, **changes: Any) -> dict[str, Any]:
    side = {"ms": 6.9, "spread": 0.01, "speedup": 0.62, "noise": 0.02}
    side |= {"compile_seconds": 10.4, "compile_cpu_seconds": 12.3}
    return {
        "model": model,
        "title": table_models.MODELS[model][0],
        "task": task,
        "device": "card",
        "torch": "2.11.0",
        "python": "3.12",
        "date": "2026-11-20",
        "rounds": 20,
        "eager": {"ms": 4.29, "spread": 0.01, "peak_bytes": 2 << 30},
        "sides": {"default": {**side, "peak_bytes": 3 << 30, **changes}},
    }


def test_runs_are_joined_and_what_lost_names_its_cause(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    lost = _row("bert", "inference", cause="attention: two products and a softmax")
    close = _row("vit", "inference", speedup=0.99)
    failed = {"model": "gpt2", "task": "training", "failed": "left out: the time was up"}
    first.write_text("\n".join(map(json.dumps, (lost, failed))))
    second.write_text("\n".join(map(json.dumps, (close, _row("gpt2", "training", speedup=2.3)))))
    text = model_table.table(model_table.joined([first, second]))
    assert "left out" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in rows[1:]] == [
        "| BERT-base, 16×512", "| GPT-2, 8×512", "| ViT-Large, batch 32"
    ]  # fmt: skip
    assert "| 4.29 ±1% | 6.9 (**0.62x** ±2%) | 10.4 | 12.3 | 2,147, 3,221 |" in text
    assert "- BERT-base, 16×512, inference, default: attention: two products" in text
    assert "- ViT-Large, batch 32, inference, default: inside the noise" in text


def test_a_full_card_is_told() -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
    assert table_row.words(error).startswith("out of memory: CUDA out of memory")


def test_the_profile_of_a_row_is_of_its_model_and_mode() -> None:
    row = _row("bert", "training")
    command = model_table.profile_command(row, "max-autotune", tiny=False)
    assert command[0] == "profile"
    assert command[-3:] == ["--train", "--mode", "max-autotune"]
    assert "bert_base(training=True)" in command
    graphs = model_table.profile_command(row, "reduce-overhead", tiny=False)
    assert graphs[-1] == "--train", "a replay is one step: its kernels are the default mode's"


def test_the_cause_is_the_first_finding_of_the_profile(tmp_path: Path) -> None:
    trace = tmp_path / "run.tcw"
    with trace.open("wb") as stream:
        writer = TraceWriter(lambda line: stream.write(line))
        for record in profiles.bert_on_a_gpu():
            writer.emit(record)
    text = model_table.first_finding(trace)
    assert "attention" in text
    assert text.endswith("µs a call")


def test_our_resnet_has_the_parameters_of_the_paper() -> None:
    with torch.device("meta"):
        model = table_models.ResNet50()
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_557_032
    assert model.to_empty(device="cpu").eval()(torch.ones(1, 3, 64, 64)).shape == (1, 1000)


@pytest.mark.parametrize("name", table_models.MODELS)
def test_a_model_takes_its_example_inputs(name: str) -> None:
    if name != "resnet":
        pytest.importorskip("transformers")
    model = table_models.MODELS[name][1](tiny=True)
    positional, keyword = table_models.example_inputs()
    with torch.no_grad():
        model(*positional, **keyword)
    parameters = {parameter.dtype for parameter in model.parameters()}
    assert parameters == {torch.bfloat16}
