"""Recordings of small models with predicted GPU code, for the tests of the shadow compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.inductor.shadow import shadow_compile as shadow
from tcw.compiler.trace.records import KernelBinary, Record, Settings, Warned
from tcw.compiler.trace.writer import TraceWriter


class Block(torch.nn.Module):
    """A transformer block with its attention written out."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(self.norm1(x)).view(shape).permute(2, 0, 3, 1, 4)
        attended = torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        gelu = torch.nn.functional.gelu(self.up(self.norm2(x)))
        return x + self.down(torch.nn.functional.dropout(gelu, 0.1))


class Listening(Recorder):
    """A recorder whose records stay in memory."""

    def __init__(self, arch: str = "sm_90") -> None:
        settings = Settings(file="model.py", device="cuda", arch=arch)
        super().__init__(writer=TraceWriter(), settings=settings)
        self.records: list[Record] = []
        self.texts: dict[str, str] = {}

    def emit(self, record: Record) -> None:
        self.records.append(record)

    def text(self, body: str) -> str:
        key = super().text(body)
        self.texts[key] = body
        return key


@dataclass
class Prediction:
    """What one recording predicted, and the code that the prediction is from."""

    recorder: Listening
    wrappers: list[str] = field(default_factory=list)
    real: list[str] = field(default_factory=list)

    @property
    def binaries(self) -> list[KernelBinary]:
        return [each for each in self.recorder.records if isinstance(each, KernelBinary)]

    @property
    def warnings(self) -> list[str]:
        return [each.message for each in self.recorder.records if isinstance(each, Warned)]


@contextmanager
def predicted(
    architectures: Sequence[str] = ("sm_90",), caches: bool = False
) -> Iterator[Prediction]:
    """Everything compiled inside is predicted for each architecture.

    Without `caches`, it is compiled from scratch.
    """
    prediction = Prediction(Listening())

    def keep(code: str) -> None:
        (prediction.wrappers if predicting.get() else prediction.real).append(code)

    with ExitStack() as undo, pytest.MonkeyPatch.context() as patched:
        undo.enter_context(torch._inductor.config.patch(fx_graph_cache=caches))
        undo.enter_context(torch._functorch.config.patch(enable_autograd_cache=caches))
        patched.setattr(torch._inductor.graph.GraphLowering, "save_output_code", staticmethod(keep))
        for name in architectures:
            undo.callback(shadow.install(prediction.recorder, ARCHITECTURES[name]))
        torch._dynamo.reset()
        yield prediction
    torch._dynamo.reset()


def train(function: Callable[..., Any], *inputs: Any) -> None:
    function(*inputs).sum().backward()
