"""A compiled graph as JSON: everything that a warm start needs after AOTAutograd."""

from __future__ import annotations

from typing import Literal

import msgspec

from tcw.compiler.codegen.launcher.segment import KernelSite
from tcw.compiler.codegen.unit import DeviceKernel, PhaseLines


class Unavailable(Exception):
    """Units cannot be built or loaded here. The message says what to do about it."""


FORMAT = 5


class SegmentEntry(msgspec.Struct, frozen=True):
    """A function of the unit that Python can call."""

    name: str
    boxed: bool = False
    """It takes and returns a list: it is the whole graph."""


class Binding(msgspec.Struct, frozen=True):
    """A global name of the wrapper, resolved when the artifact is loaded."""

    name: str
    kind: Literal["operation", "constant", "helper"]
    target: str
    """`aten.mm.default`; a tensor's or a subgraph's node; a function of `wrapper_helpers`."""


class KernelText(msgspec.Struct, frozen=True):
    """The place of a kernel's text in the unit: its function, and those of its parts."""

    line: int
    """The first one, from 1."""
    count: int
    """How many lines it has."""
    parts: tuple[PhaseLines, ...] = ()
    """Their lines are those of the kernel's text."""
    launches: tuple[str, ...] = ()
    """Names of the GPU's kernels that it launches, in order."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled graph. Its callable is the boxed segment `entry`, or else the wrapper's `call`."""

    name: str
    """For example `0/0/forward`."""
    unit: str = ""
    """C++ text; "" if the graph consists of ATen calls only."""
    sites: tuple[KernelSite, ...] = ()
    """The unit's calls of kernels, in order; their lines are those of `unit`."""
    kernels: dict[str, KernelText] = {}
    """Of the functions that the code generator wrote, by name."""
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    """What the unit needs beyond libm and OpenMP: `torch_cpu`."""
    library: str = ""
    """Digest of the unit's shared library."""
    device: int = -1
    """Index of the GPU that runs its kernels; -1 for the CPU."""
    arch: str = ""
    """The GPU's architecture, `sm_90`."""
    module: str = ""
    """Python text that defines the GPU's kernels with Triton."""
    device_kernels: tuple[DeviceKernel, ...] = ()
    segments: tuple[SegmentEntry, ...] = ()
    entry: str = ""
    wrapper: str = ""
    """Python text with a function `call(args)`."""
    bindings: tuple[Binding, ...] = ()
    build_cpu_seconds: float = 0.0
    extra: msgspec.Raw = msgspec.Raw(b"null")
    """JSON for the stages: what they record again on a warm start."""
