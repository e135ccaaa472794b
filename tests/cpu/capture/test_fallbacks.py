"""What runs eagerly after all: limits, hidden errors, backends that give up, disabled functions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo import config

from tcw.compiler.trace.records import EagerFallback, FrameEnd, GraphBreak
from tests.cpu.capture import breaking
from tests.cpu.capture.compiled import compiled

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.ones(2, 2)


def times(x: Any, number: int) -> Any:
    return x * number


def refuses(module: Any, inputs: Any) -> Any:
    raise ValueError("no such kernel")


def test_the_recompile_limit() -> None:
    calls = [(X, number) for number in range(2, 7)]
    with config.patch(recompile_limit=3):
        result = compiled(times, *calls, dynamic=False)
    (record,) = result.recording.all(EagerFallback)
    assert record.kind == "recompile-limit"
    assert "exceeding the recompile_limit cache size limit (currently set to 3)" in record.reason
    assert (record.compile_id, record.function, record.call) == ("0/3", "times", 4)
    assert record.advice[-1].code.startswith("torch._dynamo.config.recompile_limit = ")
    assert result.recording.all(GraphBreak) == []
    statuses = [end.status for end in result.recording.all(FrameEnd)]
    assert statuses == ["compiled", "compiled", "compiled", "skipped"]


def test_the_limit_under_fullgraph_stops_the_program() -> None:
    calls = [(X, number) for number in range(2, 7)]
    with config.patch(recompile_limit=2):
        result = compiled(times, *calls, dynamic=False, fullgraph=True)
    assert result.error is not None
    (record,) = result.recording.all(EagerFallback)
    assert (record.by_limit, record.stops) == (True, True)
    last = result.recording.all(FrameEnd)[-1]
    assert last.status == "failed"
    assert "recompile limit" in last.reason


def test_a_hidden_error_of_a_backend() -> None:
    with config.patch(suppress_errors=True):
        result = compiled(lambda x: x + 1, (X,), backend=refuses)
    assert torch.equal(result.result, X + 1)
    (record,) = result.recording.all(EagerFallback)
    assert record.kind == "backend"
    assert record.reason == "backend='refuses' raised: ValueError: no such kernel"


def test_an_error_that_is_raised_is_no_fallback() -> None:
    result = compiled(lambda x: x + 1, (X,), backend=refuses)
    assert type(result.error).__name__ == "BackendCompilerFailed"
    assert result.recording.all(EagerFallback) == []


def test_a_hidden_error_of_dynamo() -> None:
    with config.patch(suppress_errors=True):
        result = compiled(lambda x: x @ torch.ones(7, 3), (X,))
    (record,) = result.recording.all(EagerFallback)
    assert record.kind == "suppressed-error"


def test_a_backend_that_breaks_the_graph() -> None:
    def backend(module: Any, inputs: Any) -> Any:
        raise torch._subclasses.fake_tensor.DataDependentOutputException("mine.op")

    result = compiled(breaking.prints, (X,), backend=backend)
    (record,) = result.recording.all(EagerFallback)
    assert record.kind == "backend"
    assert "mine.op" in record.reason


def test_a_disabled_function_once_for_each_place() -> None:
    result = compiled(breaking.calls_disabled, (X,), (torch.ones(3, 3),), dynamic=False)
    (record,) = result.recording.all(EagerFallback)
    assert (record.kind, record.function) == ("disabled", "disabled")
    assert record.location is not None
    assert breaking.marked()[record.location.line] == ["disabled(y)"]


def test_a_compile_that_works_falls_back_nowhere() -> None:
    assert compiled(breaking.branch_clamp, (X,)).recording.all(EagerFallback) == []
