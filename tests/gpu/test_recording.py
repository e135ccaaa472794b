"""Models on a real GPU: what a recording says of them."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.records import Kernel
from tcw.viewers.summary import summarise
from tests.gpu.conftest import Explain

MODEL = """
import torch


def model(x, weight):
    return torch.softmax(x @ weight, dim=-1) * 2


example_inputs = (torch.randn(256, 64).DEVICE, torch.randn(64, 128).DEVICE)
"""
ON_GPU = MODEL.replace(".DEVICE", ".cuda()")
ON_CPU = MODEL.replace(".DEVICE", "")


def test_inductor_writes_triton_and_it_is_not_called_predicted(explain: Explain) -> None:
    recording = explain(ON_GPU, "--no-grad")
    kernels = recording.all(Kernel)
    assert [kernel.language for kernel in kernels if kernel.text] == ["triton"]
    assert not any(kernel.predicted for kernel in kernels)
    assert recording.environment is not None
    assert recording.environment.gpu
    speed = summarise(recording).speed
    assert speed is not None
    assert speed.eager_ms > 0
    assert speed.compiled_ms > 0
    assert recording.numerics is not None
    assert recording.numerics.within


def test_what_was_predicted_is_what_the_gpu_compiles(explain: Explain) -> None:
    torch = pytest.importorskip("torch")
    major, minor = torch.cuda.get_device_capability()
    predicted = explain(
        ON_CPU, "--no-grad", "--device", "cuda", "--arch", f"sm_{major}{minor}", hidden=True
    )
    real = explain(ON_GPU, "--no-grad")
    bodies = [
        [_body(recording.text(k.text)) for k in recording.all(Kernel) if k.language == "triton"]
        for recording in (predicted, real)
    ]
    assert bodies[0] == bodies[1]
    assert bodies[0]


def _body(text: str) -> str:
    """The kernel without its decorators, which name the device."""
    return text[text.index("\ndef ") :]


def test_our_engine_writes_triton_and_says_how_fast_it_is(explain: Explain) -> None:
    recording = explain(ON_GPU, "--no-grad", "--engine", "tcw")
    assert recording.numerics is not None
    assert recording.numerics.within
    texts = [kernel for kernel in recording.all(Kernel) if kernel.text]
    assert [kernel.language for kernel in texts] == ["triton"]
    speed = summarise(recording).speed
    assert speed is not None
    assert speed.compiled_ms > 0
