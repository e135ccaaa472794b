"""A driven compile on a real GPU: a veto splits a Triton kernel; what it costs is said."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
import torch
from msgspec import structs
from torch.profiler import ProfilerActivity, profile

from tcw.compiler.measure.compiled.alone import captured
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.rounds.whole_runs import DeviceRun
from tcw.compiler.protocol.commands import Rerun
from tcw.compiler.trace.records import (
    Kernel,
    Numerics,
    Settings,
    WhatIf,
)
from tcw.viewers.recording import Recording
from tests.cpu.worker.driven import person
from tests.decided import pairs_in

MODEL = """
import torch


def model(x):
    return torch.softmax(x, dim=-1) * 2 + x.amax(-1, keepdim=True)


example_inputs = (torch.randn(4096, 1024).cuda(),)
"""


@pytest.mark.parametrize("engine", ["inductor", "tcw"])
def test_a_veto_makes_two_kernels_of_one_and_is_measured(tmp_path: Path, engine: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL, encoding="utf-8")
    settings = Settings(file=str(file), engine=engine, grad="no-grad")
    with person(settings, tmp_path / "run.tcw") as one:
        one.until_end("continue")
        pair = next(p for p in pairs_in(one) if p.fused and p.phase == "commit")
        overruled = structs.replace(settings, overrides={pair.id: "apart"})
        one.send(Rerun(settings=overruled, because="veto", compare_with=1))
        assert one.waits().kind == "end"
    runs = Recording(one.records).runs
    kernels = {
        number: [k for k in run.all(Kernel) if k.language == "triton"]
        for number, run in runs.items()
    }
    assert len(kernels[2]) > len(kernels[1]) >= 1
    assert all(numerics.within for run in runs.values() for numerics in run.all(Numerics))
    said = one.all(WhatIf)
    assert said
    alone = [found for found in said if found.scope == "kernel" and found.before is not None]
    assert alone, [found.reason for found in said]
    for found in alone:
        print(found)
        assert found.before is not None
        assert found.after is not None
        assert found.before.median > 0
        assert found.after.median > 0
        assert found.base_kernels
        assert found.run_kernels


def test_a_kernel_alone_takes_what_the_profiler_says_and_less_than_its_call() -> None:
    """torch's profiler reads the same kernel by CUPTI; events lie a little outside it."""
    x = torch.randn(8192, 4096, device="cuda")
    with torch.no_grad(), inductor_graphs() as found:
        compiled = torch.compile(lambda x: torch.softmax(x, -1) * 2)
        compiled(x)
        (graph,) = found
        replay = captured(graph, set(graph.kernels))
        run = replay.prepare()
        assert isinstance(run, DeviceRun)
        alone = median(run.seconds() for _ in range(20))
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            for _ in range(20):
                run()
            torch.cuda.synchronize()
        kernels = [average for average in profiled.key_averages() if "triton" in average.key]
        said = sum(kernel.device_time_total for kernel in kernels) / 20 * 1e-6
        print(f"events {alone * 1e6:.1f} us, CUPTI {said * 1e6:.1f} us")
        assert 0.8 * said < alone < 1.5 * said + 10e-6
    torch._dynamo.reset()
