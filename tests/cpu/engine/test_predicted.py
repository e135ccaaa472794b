"""GPU code of our engine without a GPU: what is recorded, and that the real compile is the same."""

from __future__ import annotations

import tempfile

import pytest
import torch
from torch import nn

import tcw.compiler.engine.predicted as prediction
from tcw.compiler.capture import HOOKS as CAPTURE
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.protocol.decision_records import decided_record
from tcw.compiler.runtime.gpu.triton_stages import NoTriton
from tcw.compiler.trace.records import Decided, Kernel, KernelBinary, MemoryPlan, Warned, Wrapper
from tcw.viewers.summary import summarise
from tests.cpu.recorded import Recorded, record
from tests.long import mostly_long

pytest.importorskip("triton")


class Net(nn.Module):
    """A product, a norm over its rows, and a column sum."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(64, 256), nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.linear(x))
        return y.softmax(-1) + y.sum(0)


NET = Net.forward.__code__


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")


def recorded(
    train: bool = True, overrides: dict[str, str] | None = None, **settings: str
) -> Recorded:
    """With empty caches of our own: a graph that is in them is not compiled."""
    torch.manual_seed(0)
    with (
        tempfile.TemporaryDirectory() as cache,
        pytest.MonkeyPatch.context() as patched,
        record(CAPTURE, engine="tcw", **settings) as found,
        listening(
            found.recorder,
            Gate(overrides, watch=lambda one: found.recorder.emit(decided_record(one))),
        ),
    ):
        patched.setenv("TCW_CACHE_DIR", cache)
        net, x = Net().train(train), torch.randn(128, 64)
        output = torch.compile(net, backend=backend)(x)
        assert torch.allclose(output, net(x), atol=1e-5)
        if train:
            output.sum().backward()
    return found


def of_the_gpu(found: Recorded) -> list[Kernel]:
    return [k for k in found.all(Kernel) if k.predicted and k.language != "aten"]


@pytest.mark.long
def test_a_training_step() -> None:
    found = recorded(device="cuda", arch="sm_90")
    assert found.all(Warned) == []
    kernels = of_the_gpu(found)
    assert {k.graph for k in kernels} == {
        "0/0/forward@sm_90/lowered",
        "0/0/backward@sm_90/lowered",
    }
    binaries = {binary.kernel: binary for binary in found.all(KernelBinary)}
    for kernel in kernels:
        text, binary = found.text(kernel.text), binaries[kernel.id]
        assert kernel.language == "triton"
        assert text.startswith("@triton.jit\ndef ")
        lines = text.splitlines()
        assert kernel.lines
        for line in kernel.lines:
            assert lines[line.line - 1].strip()
            assert {place.file for place in line.locations} == {__file__}
        assert ".target sm_90" in found.text(binary.ptx)
        assert "tt.func" in found.text(binary.ttir)
        assert "EXIT" in found.text(binary.sass)
        assert binary.error == ""
        assert binary.registers
        assert binary.spill_bytes == 0
        assert binary.most_warps == 64
        assert binary.resident_warps in range(4, 65)
    lines_of = {line.line for kernel in kernels for line in kernel.locations}
    assert lines_of >= {NET.co_firstlineno + 1, NET.co_firstlineno + 2}


def test_the_real_compile_is_the_same() -> None:
    def real(found: Recorded) -> list[object]:
        return [
            *((k.name, k.graph, found.text(k.text)) for k in found.all(Kernel) if not k.predicted),
            *((p.graph, p.peak_bytes) for p in found.all(MemoryPlan) if "@" not in p.graph),
            *((d.id, d.choice) for d in found.all(Decided) if "@" not in d.graph),
            *(found.text(w.text) for w in found.all(Wrapper) if not w.predicted),
        ]

    assert real(recorded(device="cuda", arch="sm_90")) == real(recorded())


@pytest.mark.parametrize("arch", mostly_long(ARCHITECTURES, ("sm_80",)))
def test_each_architecture(arch: str) -> None:
    found = recorded(train=False, device="cuda", arch=arch)
    assert f".target {arch}" in found.text(found.all(KernelBinary)[0].ptx)
    assert summarise(found).kernels.predicted >= 1


def test_tiles_are_decisions() -> None:
    """With the numbers of the model, and open to overrides."""
    found = recorded(train=False, device="cuda", arch="sm_90")
    tiles = [d for d in found.all(Decided) if d.kind == "tile"]
    assert tiles
    assert {d.graph for d in tiles} == {"0/0/forward@sm_90"}
    (rows,) = [d for d in tiles if d.default.startswith("1x")]
    assert rows.numbers["programs"] > 0
    assert len(rows.choices) > 3
    warps = rows.default.rpartition("-")[2]
    other = next(choice for choice in rows.choices if choice.rpartition("-")[2] != warps)
    again = recorded(train=False, device="cuda", arch="sm_90", overrides={rows.id: other})
    (same,) = [d for d in again.all(Decided) if d.id == rows.id]
    assert (same.choice, same.overridden) == (other, True)
    first, second = ([b.configuration for b in of.all(KernelBinary)] for of in (found, again))
    assert first != second


def test_nothing_is_predicted_unasked_or_before_code_generation() -> None:
    assert of_the_gpu(recorded(train=False)) == []
    assert of_the_gpu(recorded(train=False, device="cuda", arch="sm_90", until="fusion")) == []


def test_a_failure_is_said_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise NoTriton("Triton is not installed; pip install triton")

    monkeypatch.setattr(prediction, "compiled", fails)
    found = recorded(train=False, device="cuda", arch="sm_90")
    assert {b.error for b in found.all(KernelBinary)} == {
        "Triton is not installed; pip install triton"
    }
    monkeypatch.setattr(prediction, "written", fails)
    found = recorded(train=False, device="cuda", arch="sm_90")
    assert [w.message for w in found.all(Warned)] == [
        "the sm_90 code of 0/0/forward is not predicted: "
        "NoTriton: Triton is not installed; pip install triton"
    ]


def test_an_unknown_architecture_is_named() -> None:
    found = recorded(train=False, device="cuda", arch="sm_75")
    (words,) = [w.message for w in found.all(Warned)]
    assert words == (
        "no sm_75 code is predicted: tcw knows sm_80, sm_90, sm_100; take the nearest of them"
    )
