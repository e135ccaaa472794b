"""The time of library calls by themselves, from torch's profiler inside compiled graphs."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
import torch

from tcw.compiler.measure.compiled.engine_graphs import AtenGraph, engine_graphs
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.engine_probe import engine_probe
from tcw.compiler.measure.probes.inductor_probe import InductorProbe
from tcw.compiler.measure.probes.library_calls import LibraryCall, inside, less_calling, times
from tcw.compiler.measure.probes.sides import CompiledSide

CALLS = 3


def network(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    h = torch.relu(x @ weight) @ weight
    return torch.sort(torch.softmax(h, -1), dim=-1)[0].cumsum(0) @ weight


class Compiled:
    """A compiled call, made under the profiler."""

    def __init__(self, engine: str) -> None:
        torch._dynamo.reset()
        compiled = torch.compile(network, backend=engine)
        x, weight = torch.randn(64, 64), torch.randn(64, 64) / 8
        left: list[AtenGraph] = []
        with ExitStack() as stack, torch.no_grad():
            of_inductor = stack.enter_context(inductor_graphs(keep_arguments=False))
            of_engine = stack.enter_context(engine_graphs(False, left))
            compiled(x, weight)
        self.probes: list[CodeProbe] = [
            InductorProbe("0/0/inference", graph) for graph in of_inductor
        ]
        self.probes += map(engine_probe, of_engine)
        self.side = CompiledSide(self.probes, False, of_engine)
        self.calls: list[list[LibraryCall]] = []
        ways: Any = self.side.probes()
        with torch.no_grad():
            for _ in range(CALLS):
                with ways["between"]() as looked:
                    compiled(x, weight)
                self.calls.append(inside(looked.profile.trace))


@pytest.fixture(scope="module", params=["inductor", "tcw"])
def compiled(request: pytest.FixtureRequest) -> Compiled:
    return Compiled(request.param)


def test_each_library_call_of_a_graph_is_read(compiled: Compiled) -> None:
    found = times(compiled.probes, compiled.side.bases, compiled.calls)
    (probe,), (base,) = compiled.probes, compiled.side.bases
    library = {base + 1 + step.index for step in probe.steps if step.kind == "aten"}
    assert len(library) >= 4
    assert set(found) == library
    assert all(len(seconds) == CALLS and min(seconds) > 0 for seconds in found.values())


def test_a_call_that_was_not_seen_in_each_round_has_no_time(compiled: Compiled) -> None:
    short = [*compiled.calls[:-1], compiled.calls[-1][:-1]]
    every = times(compiled.probes, compiled.side.bases, compiled.calls)
    assert len(times(compiled.probes, compiled.side.bases, short)) == len(every) - 1


def test_what_calling_takes_is_taken_off_each_round() -> None:
    assert less_calling([12.0, 10.0, 11.0], [8.0, 9.0, 8.5]) == pytest.approx([9.5, 7.5, 8.5])
    assert less_calling([5.0, 6.0], [8.0, 9.0]) == [5.0, 6.0]
