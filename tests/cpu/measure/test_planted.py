"""A constant changed in our engine's code makes a result wrong, and the probe sees which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tcw.compiler.engine.backend import backend
from tcw.compiler.measure.compiled.engine_graphs import engine_graphs
from tcw.compiler.measure.probes.engine_probe import EngineProbe
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler
from tests.cpu.measure.planted import planted

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    first = torch.relu(x @ w) + 1
    second = torch.tanh(first @ w) * 0.1875
    return (second @ w).sum(-1)


INPUTS = torch.randn(16, 32), torch.randn(32, 32) / 8


def test_the_probe_sees_it_by_the_name_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = planted(tmp_path, r"0\.1875", "0.1876")
    monkeypatch.setenv("CXX", made.compiler)
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TCW_STRICT", "1")
    torch._dynamo.reset()
    with engine_graphs() as graphs, torch.no_grad():
        compiled = torch.compile(layers, backend=backend)
        compiled(*INPUTS)
    assert made.times() == 1
    (graph,) = graphs
    probe = EngineProbe(graph)
    wrong: list[str] = []

    def see(step: Any, tensors: Any) -> None:
        done = {name: tensors[name] for name in probe.memory.complete(step.index)}
        for name, node in probe.memory.nodes(done).items():
            if name == "mul" and not torch.allclose(node, expected, rtol=1e-5, atol=0):
                wrong.append(step.name)

    first = torch.relu(INPUTS[0] @ INPUTS[1]) + 1
    expected = torch.tanh(first @ INPUTS[1]) * 0.1875
    with probe.observing(see), torch.no_grad():
        compiled(*INPUTS)
    assert wrong == ["nest_tanh_mul"]
    assert made.times() == 2
    torch._dynamo.reset()
