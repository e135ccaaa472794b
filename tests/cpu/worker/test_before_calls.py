"""Lines that run before each call: which are allowed, and what they give the call."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import PreparedRun, prepare
from tcw.workbench.worker.before_calls import run_before_call
from tcw.workbench.worker.results import CallResults


def model(x: Any, n: Any = 2) -> Any:
    return x * n


def prepared(*positional: Any, **keyword: Any) -> PreparedRun:
    return prepare(model, InputSet(positional, keyword), "grad")


def test_arguments_are_replaced() -> None:
    run = prepared(torch.ones(3, 2).t(), n=3)
    signature = inspect.signature(model)
    lines = ("x = x.contiguous()", "n = torch.tensor(n)", "torch._dynamo.mark_dynamic(x, 1)")
    named = run_before_call(lines, signature, run)
    assert run.positional[0].is_contiguous()
    assert named["x"] is run.positional[0]
    assert run.positional[0]._dynamo_dynamic_indices == {1}
    assert torch.equal(run.keyword["n"], torch.tensor(3))
    assert not run.passed[0][0].is_contiguous()  # type: ignore[index]


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "torch.os.system('true')",
        "torch.load('x.pt')",
        "x.data.numpy().tofile('x')",
        "x.__class__",
        "exec('1')",
        "y = x",
        "(lambda: 1)()",
        "[x for x in x]",
        "x = x.to(torch.hub)",
        "x = (",
    ],
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(UserError):
        run_before_call((line,), inspect.signature(model), prepared(torch.ones(2)))


def test_a_change_of_a_copy_is_no_change_of_what_was_passed() -> None:
    """A fix that passes a copy to code that writes into its argument is found out."""
    inputs = InputSet((torch.ones(2),), {})
    kept = []
    for lines in ((), ("x = x.clone()",)):
        run = prepare(lambda x: x.add_(1), inputs, "grad")
        if lines:
            run_before_call(lines, inspect.signature(lambda x: x), run)
        results = CallResults()
        results.compare(1, inputs, run, run())
        kept.append({path for _, path, _ in results._values})
    assert kept[0] - kept[1] == {"inputs[0][0] after the call"}
