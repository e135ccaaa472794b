"""An error of our compiler costs speed, never the user's model."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import pytest
import torch

import compiler.engine.compile as stages
from compiler.control.decisions import Gate
from compiler.engine.backend import backend
from compiler.engine.recording import listening
from compiler.trace.records import Warned
from tests.cpu.recorded import record


def broken(*_: Any, **__: Any) -> NoReturn:
    raise ArithmeticError("no such loop")


def test_the_graph_runs_on_aten_and_a_warning_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "")
    monkeypatch.setattr(stages, "lower", broken)
    x = torch.ones(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.equal(torch.compile(torch.sin, backend=backend)(x), torch.sin(x))
    (message,) = [str(one.message) for one in caught if "tcw" in str(one.message)]
    assert "runs on ATen: ArithmeticError at engine/compile.py:" in message
    assert "no such loop" in message
    assert "0/0/inference" in message


def test_a_higher_order_operation_is_named() -> None:
    """Not the part of the graph that it runs, `true_graph_0`."""

    def either(x):
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    x = torch.ones(3)
    with record([]) as recorded, listening(recorded.recorder, Gate()):
        assert torch.equal(torch.compile(either, backend=backend)(x), either(x))
    assert [warned.message for warned in recorded.all(Warned)] == [
        "graph 0/0/inference runs on ATen: no lowering for the higher-order operation cond"
    ]


def test_strict_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "lower", broken)
    with pytest.raises(Exception, match="no such loop"):
        torch.compile(torch.sin, backend=backend)(torch.ones(3))
