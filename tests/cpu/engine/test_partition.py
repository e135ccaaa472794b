"""The partition into forward and backward: how the minimum cut is found, and that it is torch's."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
import torch
import torch.nn.functional as F
from networkx.algorithms.flow import maxflow, preflow_push
from torch import nn
from torch._functorch import partitioners

from tcw.compiler.engine import backend as engine
from tcw.compiler.engine.partition import maximum_flow_by_trees


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.narrow(F.gelu(self.wide(self.norm(x))))
        return x + F.softmax(y.sin() * y.tanh(), -1)


networks_cut = pytest.mark.skipif(
    hasattr(partitioners, "minimum_cut"), reason="this torch has a cut of its own"
)


@networks_cut
def test_no_preflow_is_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("networkx's default was called")

    monkeypatch.setattr(maxflow, "default_flow_func", refused)
    model = nn.Sequential(Block(), Block())
    x = torch.randn(4, 16)
    torch.testing.assert_close(torch.compile(model, backend=engine.backend)(x), model(x))
    assert maxflow.default_flow_func is refused


@networks_cut
def test_the_cut_is_that_of_preflows(monkeypatch: pytest.MonkeyPatch) -> None:
    real, networks = networkx.minimum_cut, []

    def kept(network: Any, *ends: str) -> Any:
        networks.append(network)
        return real(network, *ends)

    monkeypatch.setattr(networkx, "minimum_cut", kept)
    model = nn.Sequential(*(Block() for _ in range(3)))
    torch.compile(model, backend=engine.backend)(torch.randn(4, 16))
    (network,) = networks
    with maximum_flow_by_trees():
        found = real(network, "source", "sink")
    assert found == real(network, "source", "sink", flow_func=preflow_push)
    assert found[0] > 0


def test_neither_half_writes_python(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_graph, unwritten = engine.compile_graph, {}

    def kept(module: Any, inputs: Any, **about: Any) -> Any:
        compiled = compile_graph(module, inputs, **about)
        unwritten[about["kind"]] = module._needs_recompile()
        return compiled

    monkeypatch.setattr(engine, "compile_graph", kept)
    model = nn.Sequential(Block(), Block())
    torch.compile(model, backend=engine.backend)(torch.randn(4, 16)).sum().backward()
    assert unwritten == {"forward": True, "backward": True}
