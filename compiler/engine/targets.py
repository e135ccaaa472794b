"""What a graph is compiled for: the CPU, or one GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import fx

from tcw.compiler.codegen.choices import Ask
from tcw.compiler.codegen.cpp.cpp_unit import unit as cpp_unit
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.triton_unit import unit as triton_unit
from tcw.compiler.codegen.triton.vocabulary import Unwritable
from tcw.compiler.codegen.unit import Unit
from tcw.compiler.fusion import weights
from tcw.compiler.gpu.architectures import ARCHITECTURES, Architecture
from tcw.compiler.loops.nest import Program
from tcw.compiler.lowering.registry import Unsupported
from tcw.compiler.memory.plan import Plan
from tcw.compiler.runtime import vector_functions
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.assemble import assemble
from tcw.compiler.runtime.gpu.binaries import triton_version
from tcw.compiler.runtime.gpu.kernel_times import Timing
from tcw.compiler.runtime.store import usable_store
from tcw.compiler.runtime.toolchain import find_compiler, instruction_set

CUDA_GRAPHS = "triton.cudagraphs"
"""Inductor's name in `options`."""


class Mode(NamedTuple):
    """What a graph is compiled for besides its target."""

    tuned: bool = False
    """A GPU's tiles are the fastest of a few, measured."""
    cuda_graphs: bool = False
    """Graphs are replayed as CUDA graphs if possible."""


DEFAULT = Mode()
MODES = {
    "default": DEFAULT,
    "lite": DEFAULT,
    "reduce-overhead": Mode(cuda_graphs=True),
    "max-autotune": Mode(tuned=True, cuda_graphs=True),
    "max-autotune-no-cudagraphs": Mode(tuned=True),
}


class Target(Protocol):
    """Where loops run, and how they are written for it."""

    @property
    def device(self) -> torch.device:
        """Operations on other devices become calls."""

    @property
    def machine(self) -> weights.Machine:
        """What fusion assumes of it."""

    @property
    def settings(self) -> dict[str, str]:
        """What a compile for it depends on besides the machine's CPU, by name."""

    def unit(
        self, plan: Plan, program: Program, comments: Mapping[str, str] | None, ask: Ask | None
    ) -> Unit:
        """The code of a planned program."""

    def assemble(self, plan: Plan, program: Program, code: Unit, extra: object) -> Artifact:
        """The artifact of that code."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """This machine's CPU: C++ with vectors."""

    device = torch.device("cpu")
    machine = weights.CPU

    @property
    def settings(self) -> dict[str, str]:
        return {}

    def unit(
        self, plan: Plan, program: Program, comments: Mapping[str, str] | None, ask: Ask | None
    ) -> Unit:
        isa = instruction_set(find_compiler())
        vocabulary = Vocabulary(isa, sleef=not vector_functions.missing())
        return cpp_unit(plan, program, vocabulary, comments, ask)

    def assemble(self, plan: Plan, program: Program, code: Unit, extra: object) -> Artifact:
        return assemble(plan, program, code, instruction_set(find_compiler()), extra)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU: Triton, launched from C++."""

    device: torch.device
    architecture: Architecture
    tuned: bool = False
    """Tiles are the fastest of a few, measured on this GPU."""

    @property
    def machine(self) -> weights.Machine:
        return weights.GPU

    @property
    def settings(self) -> dict[str, str]:
        tuned = {"tiles": "measured"} if self.tuned else {}
        return {"gpu": self.architecture.name, "triton": triton_version(), **tuned}

    def unit(
        self, plan: Plan, program: Program, comments: Mapping[str, str] | None, ask: Ask | None
    ) -> Unit:
        try:
            limits = Limits(self.architecture, program.graph.hints, program.graph.divisible)
            return triton_unit(plan, program, limits, comments, ask, self._timing(program))
        except Unwritable as error:
            raise Unsupported(str(error)) from error

    def _timing(self, program: Program) -> Timing | None:
        if not self.tuned:
            return None
        return Timing(program, self.device.index or 0, self.architecture.name, usable_store()[0])

    def assemble(self, plan: Plan, program: Program, code: Unit, extra: object) -> Artifact:
        isa = instruction_set(find_compiler())
        index = self.device.index or 0
        return assemble(plan, program, code, isa, extra, index, self.architecture.name)


def target_of(module: fx.GraphModule, *, tuned: bool = False) -> Target | str:
    """Where a graph's loops run: on the one GPU that has its tensors, else on the CPU. A text says
    why on neither. `tuned`: a GPU's tiles are measured."""
    found = devices(module)
    gpus = [device for device in found if device.type == "cuda"]
    others = sorted({device.type for device in found} - {"cpu", "cuda"})
    if not gpus:
        if others and not any(device.type == "cpu" for device in found):
            return f"its tensors are on {' and '.join(others)}, our loops run on CPUs and GPUs"
        return Cpu()
    if len(gpus) > 1:
        return f"its tensors are on {' and '.join(map(str, gpus))}: loops run on one of them"
    capability = torch.cuda.get_device_capability(gpus[0])
    name = f"sm_{capability[0]}{capability[1]}"
    nearest = ARCHITECTURES.get(name)
    if nearest is None:
        return f"no code is written for {name}: {', '.join(ARCHITECTURES)} are known"
    return Gpu(gpus[0], nearest, tuned)


def devices(module: fx.GraphModule) -> list[torch.device]:
    """The devices of the graph's tensors, without duplicates."""
    found: dict[torch.device, None] = {}
    for node in module.graph.nodes:
        value = node.meta.get("val")
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, torch.Tensor):
                found[one.device] = None
    return list(found)
