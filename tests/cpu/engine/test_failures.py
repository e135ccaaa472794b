"""An error of our compiler costs speed, never the user's model."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import pytest
import torch

import tcw.compiler.engine.compile as stages
import tcw.compiler.engine.failures as failures
from tcw.compiler.engine.backend import backend


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


@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_what_leaves_a_graph_to_aten_is_said_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A size that a tensor holds."""

    def program(x, t):
        return x * int(t.item() * 10)  # which the backward needs, too

    monkeypatch.setattr(failures, "_said", set())
    compiled = torch.compile(program, backend=backend)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x, number = torch.ones(4, requires_grad=True), torch.tensor(1.5)
        found = compiled(x * 1, number)
        torch.testing.assert_close(found, program(x, number))
        found.sum().backward()
    said = [str(one.message) for one in caught if "tcw" in str(one.message)]
    line = program.__code__.co_firstlineno + 1
    assert said
    assert all(one.endswith(f"(test_failures.py:{line})") for one in said), said


def test_strict_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "lower", broken)
    with pytest.raises(Exception, match="no such loop"):
        torch.compile(torch.sin, backend=backend)(torch.ones(3))
