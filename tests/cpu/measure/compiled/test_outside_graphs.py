"""The part of a compiled call outside its graphs."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
import torch

from tcw.compiler.measure.compiled.outside_graphs import called_graphs


@pytest.mark.parametrize("backend", ["inductor", "tcw"])
def test_a_pause_before_the_graph_is_outside_and_one_in_it_is_not(backend: str) -> None:
    torch._dynamo.reset()
    x = torch.ones(8)
    with called_graphs() as graphs:
        compiled = torch.compile(lambda x: (x + 1).relu(), backend=backend)
        compiled(x)

    def waits(x: torch.Tensor) -> Any:
        time.sleep(2e-3)
        return compiled(x)

    outside, whole = graphs.seconds_outside([lambda: partial(waits, x)]) or (0.0, 0.0)
    assert 2e-3 <= outside < whole
    (graph,) = [graph for part in graphs._collected for graph in part]
    inner = graph.call

    def slow(arguments: list[Any]) -> Any:
        time.sleep(2e-3)
        return inner(arguments)

    graph.call = slow
    outside, whole = graphs.seconds_outside([lambda: partial(compiled, x)]) or (0.0, 0.0)
    assert whole - outside >= 2e-3
    assert graph.call is slow, "the clocks are gone"


def test_without_a_graph_nothing_is_known() -> None:
    with called_graphs() as graphs:
        pass
    assert graphs.seconds_outside([]) is None
