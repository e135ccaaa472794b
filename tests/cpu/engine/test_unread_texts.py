"""AOTAutograd's graphs are printed only for a log that is there."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch import fx
from torch._functorch._aot_autograd import graph_compile
from torch._logging._internal import trace_log

from tcw.compiler.engine.backend import backend

WRITERS = [getattr(graph_compile, name, None) for name in ("_log_joint_graph", "_log_fw_bw_graphs")]
pytestmark = pytest.mark.skipif(None in WRITERS, reason="not available in this torch")


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    real = fx.GraphModule.print_readable

    def counted(module: Any, *arguments: Any, **keywords: Any) -> str:
        found.append(real(module, *arguments, **keywords))
        return found[-1]

    monkeypatch.setattr(fx.GraphModule, "print_readable", counted)
    return found


def train() -> None:
    x = torch.randn(4, 4, requires_grad=True)
    torch.compile(lambda x: x.sin().exp(), backend=backend)(x).sum().backward()


def test_without_a_log(printed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_log, "handlers", [])
    train()
    assert printed == []
    assert [graph_compile._log_joint_graph, graph_compile._log_fw_bw_graphs] == WRITERS


def test_with_a_trace(printed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_log, "handlers", [logging.NullHandler()])
    train()
    assert sum("sin" in text for text in printed) >= 2


def test_with_a_log(printed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_log, "handlers", [])
    monkeypatch.setattr(graph_compile.aot_graphs_log, "level", logging.INFO)
    graph_compile.aot_graphs_log.manager._clear_cache()
    try:
        train()
    finally:
        graph_compile.aot_graphs_log.manager._clear_cache()
    assert sum("sin" in text for text in printed) >= 2
