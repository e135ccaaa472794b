"""What runs in functions that torch left to Python."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from tcw.compiler.capture import HOOKS
from tcw.compiler.capture.fallbacks import left_to_python
from tcw.compiler.measure.probes.eager_share import eager_shares
from tcw.compiler.trace.records import EagerShare
from tests.cpu.recorded import record


def shares(function: Any) -> list[EagerShare]:
    x = torch.ones(3, 3)
    with record(HOOKS) as recorded:
        torch.compile(function, backend="eager")(x)
        return list(eager_shares(1, lambda: function(x), left_to_python(recorded.recorder)))


def helper(x: torch.Tensor) -> torch.Tensor:
    return x.exp().log()


def loops(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        torch._dynamo.graph_break()
        x = x.sin()
    return x.tanh()


def outer(x: torch.Tensor) -> torch.Tensor:
    return loops(x.cos()).cos()


def test_a_skipped_frame_has_the_operations_that_are_not_compiled_elsewhere() -> None:
    (share,) = shares(outer)
    assert (share.function, share.count) == ("loops", 3)
    assert set(share.operations) == {"aten.sin.default", "aten.tanh.default"}
    assert 0 < share.share < 1


def printing(x: torch.Tensor) -> torch.Tensor:
    y = helper(x)
    torch._dynamo.graph_break()
    return y.tanh()


def saved(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(printing, x.sin(), use_reentrant=False).cos()


def test_all_that_checkpoint_calls_runs_eagerly_after_a_break_inside() -> None:
    (share,) = shares(saved)
    assert share.function == "printing"
    assert share.count >= 3


def test_a_function_with_a_break_that_torch_compiles_by_itself_runs_nothing_eagerly() -> None:
    def calls(x: torch.Tensor) -> torch.Tensor:
        return printing(x.sin()).cos()

    assert shares(calls) == []
