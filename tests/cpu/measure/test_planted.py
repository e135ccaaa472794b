"""A constant that is changed in generated code makes the results wrong, and the kernel is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_cache

from compiler.engine.backend import backend
from compiler.measure.engine_graphs import engine_graphs
from compiler.measure.probes.engine_probe import EngineProbe
from compiler.runtime.toolchain import NoCompiler, find_compiler
from tests.cpu.measure.planted import planted

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    first = torch.relu(x @ w) + 1
    second = torch.tanh(first @ w) * 0.1875
    return (second @ w).sum(-1)


INPUTS = torch.randn(16, 32), torch.randn(32, 32) / 8


def test_in_our_own_engine_by_the_name_of_its_kernel(
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
        for name, found in probe.memory.nodes(done).items():
            if name == "mul" and not torch.allclose(found, expected, rtol=1e-5, atol=0):
                wrong.append(step.name)

    first = torch.relu(INPUTS[0] @ INPUTS[1]) + 1
    expected = torch.tanh(first @ INPUTS[1]) * 0.1875
    with probe.observing(see), torch.no_grad():
        compiled(*INPUTS)
    assert wrong == ["nest_tanh_mul"]
    assert made.times() == 2
    torch._dynamo.reset()


@pytest.mark.long
def test_in_inductor(tmp_path: Path) -> None:
    made = planted(tmp_path, r"0\.1875", "0.1876")
    torch._dynamo.reset()
    with (
        fresh_cache(),
        torch._inductor.config.patch(
            {"cpp.cxx": (None, made.compiler), "cpp_cache_precompile_headers": False}
        ),
        torch.no_grad(),
    ):
        found = torch.compile(layers)(*INPUTS)
    assert made.times() == 1
    assert not torch.allclose(found, layers(*INPUTS), rtol=1e-5, atol=0)
    torch.testing.assert_close(found, layers(*INPUTS) * 0.1876 / 0.1875)
    torch._dynamo.reset()
