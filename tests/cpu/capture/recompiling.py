"""Recompiles in tests."""

from __future__ import annotations

from typing import Any

import torch

from tcw.compiler.trace.records import Recompile
from tests.cpu.capture.conftest import Capture


def second_call(capture: Capture, function: Any, first: Any, second: Any) -> Recompile:
    """The only recompile that `second` causes after `first`; both receive the compiled function."""
    compiled = torch.compile(function, backend="eager")
    capture.call(lambda: first(compiled))
    capture.call(lambda: second(compiled))
    (record,) = capture.all(Recompile)
    assert record.call == 2
    assert record.compile_id == "0/1"
    return record
