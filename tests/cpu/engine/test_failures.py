"""An error of our compiler costs speed, never the user's model."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import pytest
import torch

import compiler.engine.compile as stages
from compiler.engine.backend import backend


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


def test_strict_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "lower", broken)
    with pytest.raises(Exception, match="no such loop"):
        torch.compile(torch.sin, backend=backend)(torch.ones(3))
