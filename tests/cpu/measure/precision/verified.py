"""Compiles and records a function or module in this process, and compares its kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from tcw.compiler import pipeline
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.measure.compiled.collected import Collected
from tcw.compiler.measure.compiled.engine_graphs import engine_graphs
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.precision.verify_call import verify
from tcw.compiler.trace.records import Engine, Kernel, KernelPrecision, Warned
from tcw.workbench.worker.unrecorded import host_of
from tests.cpu.recorded import Recorded, record


@dataclass
class Verified:
    """The results."""

    recorded: Recorded

    @property
    def kernels(self) -> dict[str, Kernel]:
        return {kernel.id: kernel for kernel in self.recorded.all(Kernel)}

    @property
    def all(self) -> list[KernelPrecision]:
        return self.recorded.all(KernelPrecision)

    @property
    def wrong(self) -> list[tuple[str, str]]:
        """(graph, name of the function) of each kernel outside its bound."""
        names = self.kernels
        return [(one.graph, names[one.kernel].name) for one in self.all if one.within is False]

    @property
    def left_out(self) -> dict[str, str]:
        """Kernels that were not compared, and why."""
        return {self.kernels[one.kernel].name: one.reason for one in self.all if one.within is None}

    def text(self, precision: KernelPrecision) -> str:
        return self.recorded.text(precision.repro)


def verified(
    engine: Engine,
    model: Callable[..., Any],
    inputs: Sequence[Any] = (),
    keywords: dict[str, Any] | None = None,
    *,
    train: bool = False,
    kernel: str = "",
    **options: Any,
) -> Verified:
    """Compile and record one call, and verify the next. In training, the sum of squares of the
    first output, or a loss among the outputs, is differentiated."""
    given = keywords or {}
    with record(pipeline.HOOKS) as recorded:
        recorder = recorded.recorder
        recorder.settings = msgspec.structs.replace(recorder.settings, verify=True, repro=kernel)
        with (
            inductor_graphs(keep_arguments=False) as of_inductor,
            engine_graphs(keep_arguments=False) as of_engine,
            listening(recorder, Gate()),
        ):
            made = "inductor" if engine == "inductor" else backend
            compiled = torch.compile(model, backend=made, **options)

            def run() -> Any:
                with torch.set_grad_enabled(train):
                    outputs = compiled(*inputs, **given)
                    if train:
                        _loss(outputs).backward()

            run()
        graphs = Collected(of_inductor, of_engine)
        verify(host_of(recorder), recorded.records, graphs, run, engine)
        assert [warned.message for warned in recorded.all(Warned) if warned.asked] == []
    return Verified(recorded)


def _loss(outputs: Any) -> torch.Tensor:
    loss = getattr(outputs, "loss", None)
    if loss is None:
        loss = outputs if isinstance(outputs, torch.Tensor) else outputs[0]
    found: torch.Tensor = loss.float().pow(2).mean() if loss.dim() else loss
    return found
