"""GPU code without a GPU: a graph compiled for the CPU is also written for a GPU, and recorded.

The graph is copied and retargeted; the copy goes through our stages up to code generation, and
Triton compiles its kernels. Nothing of it runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from msgspec import structs
from torch import fx
from torch._dynamo.utils import dynamo_timed

from tcw.compiler.codegen.unit import DeviceKernel, DeviceModule
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.engine.compile import written
from tcw.compiler.engine.recording import current
from tcw.compiler.engine.records.writer import GraphRecords
from tcw.compiler.engine.targets import Gpu
from tcw.compiler.gpu.architectures import ARCHITECTURES, DEFAULT, Architecture
from tcw.compiler.gpu.machine_code import Binary, read, record
from tcw.compiler.gpu.retarget import DEVICE, retarget, tell_of_cpu_calls
from tcw.compiler.loops.nest import Nest
from tcw.compiler.protocol.error_words import error_line
from tcw.compiler.protocol.stages import reached
from tcw.compiler.rewrites.order import LOWERED, rewrite
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.runtime.gpu.binaries import in_threads
from tcw.compiler.runtime.gpu.triton_stages import NoTriton, compiled, load_module
from tcw.compiler.runtime.store import usable_store
from tcw.compiler.trace.records import Progress
from tcw.compiler.trace.records.graph import GraphKind


def predict(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    recorder: Recorder,
    user_outputs: int,
    *,
    kind: GraphKind,
    graph: str,
) -> None:
    """Record the GPU code of a graph. Errors are recorded."""
    settings = recorder.settings
    architecture = ARCHITECTURES.get(settings.arch or DEFAULT)
    if not reached("codegen", settings.until):
        return
    if architecture is None:
        known = ", ".join(ARCHITECTURES)
        words = f"no {settings.arch} code is predicted: tcw knows {known}; take the nearest of them"
        recorder.warn_once(words, asked=True)
        return
    try:
        with recorder.aside(), dynamo_timed(f"predict {architecture.name}"):
            _predict(module, inputs, recorder, user_outputs, architecture, kind, graph)
    except Exception as error:
        why = error_line(error, 500)
        recorder.warn_once(f"the {architecture.name} code of {graph} is not predicted: {why}")


def _predict(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    recorder: Recorder,
    user_outputs: int,
    architecture: Architecture,
    kind: GraphKind,
    graph: str,
) -> None:
    arch = architecture.name
    recorder.emit(Progress(stage="codegen", activity=f"predicting {arch} code"))
    tell_of_cpu_calls(recorder, module, arch)
    copied, moved = retarget(module, inputs)
    records = GraphRecords(recorder, copied, f"{graph}@{arch}", user_outputs, predicted=True)
    target = Gpu(torch.device(DEVICE), architecture)
    subject = Subject(copied, moved, f"{graph}@{arch}", current().gate, kind, user_outputs, "cuda")
    rewrite(LOWERED, subject, recorder, stage="lowered rewrites", graph=subject.graph)
    program, code, _ = written(subject, target, records)
    if code.device is None or not code.device.kernels:
        return
    count = len(code.device.kernels)
    doing = f"compiling {count} kernels for {arch}"
    recorder.emit(Progress(stage="codegen", activity=doing))
    binaries = _Binaries(code.device, architecture)
    for step in program.steps:
        if isinstance(step, Nest):
            _, function = code.kernels[step.name]
            binaries.record(recorder, records.kernel_id(step.name), function.launches)


class _Binaries:
    """The machine code of a module's kernels, compiled in threads."""

    def __init__(self, device: DeviceModule, architecture: Architecture) -> None:
        self.module = load_module(device.text)
        self.architecture = architecture
        self.folder = Path(usable_store()[0].folder) / "sass"
        counts = [kernel.count for kernel in device.kernels]
        made = in_threads(self._made, device.kernels, counts)
        self._known = {k.name: binary for k, binary in zip(device.kernels, made, strict=True)}

    def record(self, recorder: Recorder, id: str, names: Sequence[str]) -> None:
        """Emit what the kernels of one nest hold, as one binary: the texts one after another, the
        most that one of them takes, and the fewest warps that a processor holds of one."""
        binaries = [self._known[name] for name in names]
        if not binaries:
            return
        stages = {stage for binary in binaries for stage in binary.texts}
        texts = {
            stage: "\n".join(binary.texts.get(stage, "") for binary in binaries) for stage in stages
        }

        def most(values: list[int | None]) -> int | None:
            known = [value for value in values if value is not None]
            return max(known, default=None)

        each = [binary.facts for binary in binaries]
        facts = structs.replace(
            each[0],
            configuration="; ".join(binary.configuration for binary in each),
            registers=most([binary.registers for binary in each]),
            shared_bytes=most([binary.shared_bytes for binary in each]),
            spill_bytes=most([binary.spill_bytes for binary in each]),
            stack_bytes=most([binary.stack_bytes for binary in each]),
            resident_warps=min(
                (binary.resident_warps for binary in each if binary.resident_warps is not None),
                default=None,
            ),
            seconds=sum(binary.seconds for binary in each),
            error="; ".join(dict.fromkeys(binary.error for binary in each if binary.error)),
        )
        record(recorder, Binary(facts, texts), id)

    def _made(self, kernel: DeviceKernel) -> Binary:
        start = time.perf_counter()
        made, error, took = None, "", 0.0
        try:
            made = compiled(self.module, kernel, self.architecture.name, texts=True)
            took = time.perf_counter() - start
        except NoTriton as refused:
            error = str(refused)[:2000]
        words = f"{kernel.name}: {kernel.warps} warps"
        return read(made, self.architecture, self.folder, words, took, error)
