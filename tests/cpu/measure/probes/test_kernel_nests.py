"""Kernels of several loop nests, rebuilt with a clock around each, give the same results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tcw.compiler.engine.backend import backend
from tcw.compiler.measure.compiled.engine_graphs import engine_graphs
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.probes.kernel_nests import NestClocks, PartClocks, clocked
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler
from tcw.compiler.trace.loop_nests import outermost_loops

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TCW_STRICT", "1")
    torch._dynamo.reset()
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def sums(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.softmax(x, -1), (y * 2).sum(0)


INPUTS = torch.randn(64, 128), torch.randn(200, 30)


def test_of_inductor() -> None:
    with inductor_graphs(keep_arguments=False) as graphs:
        compiled = torch.compile(sums)
        plain = compiled(*INPUTS)
    (graph,) = graphs
    (name,) = graph.kernels
    clocks = NestClocks(graph.module, graph.source, name)
    nests = clocks.loops[name]
    assert len(nests) > 1
    lines = graph.text(name).splitlines()
    assert all("for(int64_t x0=" in lines[nest - 1] for nest in nests)
    before = getattr(graph.module, name)
    for _ in range(2):
        with clocks.timing():
            got = compiled(*INPUTS)
            seconds = clocks.read(name)
        assert len(seconds) == len(nests)
        assert all(second > 0 for second in seconds)
        for one, other in zip(got, plain, strict=True):
            assert torch.equal(one, other)
    assert getattr(graph.module, name) is before


def test_a_nest_that_threads_share_is_timed_by_the_first() -> None:
    text = "#include <a>\nvoid f()\n{\n#pragma omp parallel\n{\n#pragma omp for\nfor(x)\n{\n}\n}\n}"
    lines = clocked(text, outermost_loops(text)).splitlines()
    place = lines.index("#pragma omp for")
    assert lines[place - 1] == (
        "const long probe_at_0 = omp_get_thread_num() == 0 ? probe_now() : 0;"
    )
    assert lines[place + 4].startswith("if (omp_get_thread_num() == 0) probe_ns[0] += ")


def test_of_our_engine() -> None:
    def columns(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(x)
        return y, y.sum(0)

    with engine_graphs(keep_arguments=False) as graphs:
        compiled = torch.compile(columns, backend=backend)
        plain = compiled(INPUTS[0])
    (graph,) = graphs
    clocks = PartClocks(graph)
    ((name, loops),) = clocks.loops.items()
    lines = graph.text(name).splitlines()
    assert len(loops) == 2
    assert all(lines[line - 1].strip().startswith("for (long") for line in loops)
    with clocks.timing():
        got = compiled(INPUTS[0])
        seconds = clocks.read(name)
    assert len(seconds) == len(loops)
    assert all(second > 0 for second in seconds)
    for one, other in zip(got, plain, strict=True):
        assert torch.equal(one, other)
    assert graph.call == graph.compiled.call


def test_a_part_without_a_loop_is_named_by_its_head() -> None:
    def columns(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(x)
        return y, y.sum(0)

    with engine_graphs(keep_arguments=False) as graphs:
        torch.compile(columns, backend=backend)(torch.randn(3, 5))  # one vector: no loop over it
    (graph,) = graphs
    clocks = PartClocks(graph)
    ((name, loops),) = clocks.loops.items()
    lines = graph.text(name).splitlines()
    loop, head = (lines[line - 1].strip() for line in loops)
    assert loop.startswith("for (long")
    assert head.startswith(f"static void {name}_1(")
