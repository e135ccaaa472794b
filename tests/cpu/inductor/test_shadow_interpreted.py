"""Predicted kernels have eager's results when run in Triton's interpreter, on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tcw.compiler.inductor.shadow.triton_sources import kernel_sources
from tests.cpu.inductor import interpreted
from tests.cpu.inductor.predictions import Prediction, predicted, train

Run = Callable[[Prediction, int, list[Any]], list[Any]]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[subprocess.Popen[str]]:
    """One process for all jobs: it imports torch and Inductor, which takes longer than a job."""
    with subprocess.Popen(
        [sys.executable, interpreted.__file__],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.fixture
def run(interpreter: subprocess.Popen[str], tmp_path: Path) -> Run:
    """The outputs of a predicted wrapper, its kernels in Triton's interpreter."""
    return partial(_run, interpreter, tmp_path)


def _run(
    interpreter: subprocess.Popen[str],
    folder: Path,
    prediction: Prediction,
    wrapper: int,
    inputs: list[Any],
) -> list[Any]:
    job = folder / "job"
    code = prediction.wrappers[wrapper]
    before = sum(len(kernel_sources(each)) for each in prediction.wrappers[:wrapper])
    ours = prediction.binaries[before : before + len(kernel_sources(code))]
    configurations = {each.kernel: each.configuration for each in ours}
    torch.save({"code": code, "inputs": inputs, "configurations": configurations}, job)
    assert interpreter.stdin is not None
    assert interpreter.stdout is not None
    interpreter.stdin.write(f"{job}\n")
    interpreter.stdin.flush()
    assert interpreter.stdout.readline() == "done\n"
    return list(torch.load(f"{job}.out"))


def softmax_and_norm(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    normal = torch.nn.functional.layer_norm(torch.softmax(x, -1), (50,))
    return normal, x.sum(0)


def loops(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Reductions too long for one block."""
    return (x.amax(0), (x - x.mean(0)).square().sum(0))


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "shape"),
    [(softmax_and_norm, (6, 50)), (loops, (2600, 3))],
    ids=["norm", "loops"],
)
def test_forward(
    function: Callable[..., tuple[torch.Tensor, ...]], shape: tuple[int, ...], run: Run
) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    with predicted() as prediction:
        torch.compile(function)(x)
    outputs = run(prediction, 0, [x])
    torch.testing.assert_close(tuple(outputs), function(x), rtol=1e-5, atol=1e-5)


def test_backward(run: Run) -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 40, requires_grad=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.nn.functional.gelu(x), -1)

    with predicted() as prediction:
        train(torch.compile(function), x)
    forward, backward = prediction.wrappers
    assert forward != backward
    value, *saved = run(prediction, 0, [x.detach()])
    expected = function(x)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-5, atol=1e-5)
    tangent = torch.randn_like(expected)
    (wanted,) = torch.autograd.grad(expected, x, tangent)
    (gradient,) = run(prediction, 1, [*saved, tangent])
    torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-5)
