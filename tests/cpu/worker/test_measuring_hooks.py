"""What a what-if needs of torch: checked beforehand, told where it is not there, used as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._dynamo import convert_frame

from tcw.compiler.control.hooks import Hook
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.measure.compiled.alone import captured
from tcw.compiler.measure.compiled.inductor_graphs import HOOK as MODULES
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.what_if import compare as what_if
from tcw.compiler.trace.records import HookStatus, Settings, WhatIf
from tcw.compiler.trace.writer import TraceWriter
from tcw.workbench.worker import measuring_hooks
from tcw.workbench.worker.forget import HOOK as FORGETTING
from tcw.workbench.worker.forget import beside_what_is_compiled, caches_folder, forget_compiled


def test_this_torch_has_what_measurements_need() -> None:
    assert [status.reason for status in measuring_hooks.statuses()] == [""] * len(
        measuring_hooks.HOOKS
    )
    assert measuring_hooks.missing() == ""


def test_a_torch_without_it_measures_nothing_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking = Hook(name="x", offers="", needs=("torch._inductor.codecache:NoSuchCache",), test="")
    monkeypatch.setattr(measuring_hooks, "WHAT_IFS", (FORGETTING, lacking))
    told: list[Any] = []
    runs = [SimpleNamespace(number=number) for number in (1, 2)]
    host = SimpleNamespace(emit=told.append)
    what_if.compare(host, *runs, "kernel", measuring_hooks.missing())  # type: ignore[arg-type]
    (found,) = told
    assert isinstance(found, WhatIf)
    assert found.before is None
    assert found.reason.startswith(
        f"not available in torch {torch.__version__}: no torch._inductor"
    )


def test_kernels_of_a_generated_module_run_alone_and_all_is_forgotten() -> None:
    """The private places of torch do what the hooks say: it runs on each version tried."""
    assert all(isinstance(hook.check(), HookStatus) for hook in (MODULES, FORGETTING))
    torch._dynamo.reset()
    recorder = Recorder(TraceWriter(lambda _: None), Settings(file=""))

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1) + 1

    x = torch.randn(8, 16)
    with torch.no_grad(), inductor_graphs() as found:
        torch.testing.assert_close(torch.compile(model)(x), model(x))
        assert convert_frame.FRAME_COMPILE_COUNTER
        (graph,) = found
        assert graph.arguments is not None
        replay = captured(graph, set(graph.kernels))
        replay.prepare()()
        beside_what_is_compiled()
        assert not convert_frame.FRAME_COMPILE_COUNTER
        forget_compiled(recorder, caches_folder())
        assert not torch._dynamo.convert_frame.FRAME_COUNTER
        torch.compile(model)(x)
    assert len(found) == 2, "it was compiled again, or at least loaded again"
    torch._dynamo.reset()
