"""One call taken apart: the time of each step of the compiled code, and what the eager call did.

All times are seconds, measured in the real call, in rounds that alternate the two sides. `phase` is
"" outside training. Viewers derive the rest (shares of the roofline, causes).
"""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *
from tcw.compiler.trace.records.measure import Timed

CallPhase = Literal["", "forward", "backward", "step"]
Unmeasured = Literal["eager", "compiled", "guards"]
"""The eager operations, the steps of compiled graphs, the cost of guards."""


class Bandwidth(Part):
    """The bandwidth of a copy with this working set."""

    bytes: Bytes
    """Read and written together."""
    per_second: Number
    """Bytes, read and written together."""


class Ceilings(Record):
    """The machine's limits, measured by us once and kept in our cache."""

    device: str
    """`AMD EPYC 9B14`, `NVIDIA H200`."""
    kind: Literal["cpu", "cuda"]
    threads: Count
    bandwidth: tuple[Bandwidth, ...]
    """From sets that fit the innermost cache to sets that fit none, ascending."""
    rates: dict[str, Number]
    """dtype as `TensorMeta.dtype` has it -> FLOP/s of a large matrix product."""
    measured: UnixTime
    """Unix time."""
    kept: bool = False
    """Whether an earlier recording on this machine measured it."""
    note: str = ""
    """The conditions of the figures: `float32 products in precision 'high'`."""


class EagerOperation(Record):
    """One ATen operation of the eager call."""

    id: str
    """`e17`: counts through the trace."""
    call: Count
    operation: str
    """`aten.addmm.default`."""
    phase: CallPhase = ""
    arguments: str = ""
    """As written in a call, tensors as `f32[4, 128]`: `f32[512, 64], None, dim=-1`."""
    inputs: tuple[TensorMeta, ...] = ()
    outputs: tuple[TensorMeta, ...] = ()
    time: Timed | None = None
    """On a GPU the time of its kernels, by the device's clock."""
    host: Timed | None = None
    """Host time, if it is not the same."""
    launches: Count = 0
    """Kernels on a GPU; on a CPU 1, or 0 if it accesses no memory (a view)."""
    kernels: tuple[str, ...] = ()
    """The GPU's names of those kernels."""
    read_bytes: Bytes | None = None
    write_bytes: Bytes | None = None
    flops: Count | None = None
    location: Location | None = None
    """The user's line; in a backward, the line of the forward operation."""
    stack: tuple[Location, ...] = ()
    """Outermost first; only if there is more than `location`."""
    module: str = ""
    """Path of the module it ran in: `layers.0.attention`."""
    of: str = ""
    """In a backward: id of the forward operation whose gradient it computes."""
    part: Literal["model", "loss", "gradients", "optimizer"] = "model"
    """`loss`: added by tcw, so that there is a backward; `gradients`: adding them to parameters."""


class CompiledStep(Record):
    """One step of the compiled call: a kernel, a call into ATen, or an operation between graphs."""

    id: str
    """`s12`: counts through the trace."""
    call: Count
    kind: Literal["kernel", "aten", "eager"]
    """`eager`: an operation that ran outside all graphs: between breaks, a loss, gradients."""
    name: str
    """The generated function, `extern_kernels.addmm`, or the ATen operation."""
    phase: CallPhase = ""
    graph: str = ""
    """`0/0/forward`; "" for an eager one."""
    index: Index = 0
    """Its index in its graph's code, from 0."""
    kernel: str = ""
    """Id of its `Kernel` record."""
    time: Timed | None = None
    host: Timed | None = None
    launches: Count = 1
    kernels: tuple[str, ...] = ()
    read_bytes: Bytes | None = None
    write_bytes: Bytes | None = None
    flops: Count | None = None
    part: Literal["model", "loss", "gradients", "optimizer"] = "model"


Sameness = Literal["calls", ""]
"""`calls`: the same ATen calls on tensors of the same sizes and strides; "" otherwise."""


class Region(Record):
    """Compiled steps and the eager operations that they replaced: the smallest sets of both that
    share no line of one module instance with another region."""

    id: str
    """`r3`: counts through the trace."""
    call: Count
    label: str
    """Words: `softmax`, `add + layer norm`."""
    phase: CallPhase = ""
    steps: tuple[str, ...] = ()
    """Ids of `CompiledStep`; empty if compiling removed it."""
    operations: tuple[str, ...] = ()
    """Ids of `EagerOperation`; empty if this exists only under capture."""
    locations: tuple[Location, ...] = ()
    """Distinct user lines, in file order."""
    modules: tuple[str, ...] = ()
    eager: Timed | None = None
    compiled: Timed | None = None
    difference: Seconds = 0.0
    """Compiled - eager: the median over the rounds, or the difference of the medians, whichever is
    less noisy; negative if compiling won."""
    noise: Noise = 0.0
    """9 MAD/√rounds of it; at least 1% of eager. A difference within it does not count."""
    same: Sameness = ""
    """Whether both sides make the same calls: then `noise` is at least 5% of eager."""


class AccountLine(Part):
    """A summand of a call's time."""

    name: str
    """`kernels`, `aten`, `wrapper` (the code that calls them), `guards`, `dispatch` (AOTAutograd's
    and Dynamo's wrappers, autograd), `eager` (outside all graphs); on the eager side
    `operations` and `dispatch` (Python, modules, autograd). On a GPU `idle` instead of what the
    host does meanwhile."""
    time: Timed
    what: str = ""
    """Description for the reader: `14 loops`, `checks of 120 guards`."""

    @property
    def seconds(self) -> float:
        return self.time.median


class Account(Record):
    """Where the time of one side's call goes. The lines are measured separately from the whole."""

    side: Literal["eager", "compiled"]
    call: Count
    measured: Timed
    """The plain call, without our probes, minus the time its thread waited for a processor."""
    lines: tuple[AccountLine, ...]
    remainder: Seconds
    """measured - sum of the lines: what they do not explain; negative if they explain too much."""
    remainder_noise: Noise = 0.0
    """Seconds of uncertainty, from the medians of both calls: a remainder within it does not count.
    0 if unknown."""
    phase: CallPhase = ""
    """"" is the whole call; in training there is also one per phase."""


class CallProfile(Record):
    """The head of one profiled call; its regions, steps, operations and accounts precede it."""

    call: Count
    what: str
    """`forward`, `forward + backward`, `forward + backward + step`."""
    device: str
    eager: Timed
    compiled: Timed
    speedup: Ratio
    """eager/compiled: the median over the rounds, or the ratio of the medians, whichever is less
    noisy."""
    noise: Noise
    """As a share of `speedup`, by the same rule as a region's."""
    rounds: Count
    """Rounds of the plain calls; there may be more or fewer that count under probes."""
    contended: bool = False
    """Whether others used the processors too: a thread waited for one for more than a tenth of the
    calls' time. Then there are only the times of whole calls, and no operations, steps, regions or
    accounts."""
    exceeded: Ratio | None = None
    """How many times the whole call its measured parts came to, if that is far too much: then, too,
    there are only the times of whole calls."""
    clock: Literal["host", "device"] = "host"
    compiled_again: Count = 0
    """Graphs compiled during timing, or by the call before it: if any, the times mean nothing."""
    eager_peak_bytes: Bytes | None = None
    """Peak of what one call allocates."""
    compiled_peak_bytes: Bytes | None = None
    eager_saved_bytes: Bytes | None = None
    """What autograd keeps from forward to backward, beyond parameters and inputs."""
    compiled_saved_bytes: Bytes | None = None
    unmeasured: str = ""
    """What could not be measured, and why."""
    unmeasured_sides: tuple[Unmeasured, ...] = ()
    """What `unmeasured` is about; if empty beside a reason, it may be anything."""

    @property
    def whole_only(self) -> bool:
        """Whether there are only the times of whole calls."""
        return self.contended or self.exceeded is not None


class Moment(Part):
    """One step or operation of one round."""

    of: str
    """Id of a `CompiledStep` or an `EagerOperation`."""
    start: Seconds
    """Seconds since the call began."""
    seconds: Seconds


class CallTimeline(Record):
    """One round, in order, for export to trace viewers."""

    call: Count
    side: Literal["eager", "compiled"]
    seconds: Seconds
    moments: tuple[Moment, ...]


class NestTime(Part):
    """One loop nest of a kernel."""

    line: Line
    """Line of its outermost loop in the kernel's text, from 1."""
    time: Timed
    """All calls of the kernel together."""


class KernelNests(Record):
    """The loop nests of a kernel with several, each timed separately: the kernel was built once
    more with a clock around each, and called in separate rounds."""

    graph: str
    kernel: str
    """Id of its `Kernel` record."""
    call: Count
    nests: tuple[NestTime, ...] = ()
    """In the order of the text."""
    reason: str = ""
    """Why there are none."""


class OutputPrecision(Part):
    """One result of a kernel against float64, relative to the largest value of the result."""

    node: str
    """The node of the lowered graph."""
    error: Error
    eager_error: Error
    """The error of eager's own operations on the same inputs."""
    bound: Error
    """The accepted error; a larger one is wrong."""
    lean: Error = 0.0
    """How far all of it deviates in one direction, relative to it: rounding deviates in both. 0 if
    the bound is so tight that the error alone tells."""
    lean_bound: Error = 0.0
    note: str = ""
    """`nan in compiled only`, …"""


class KernelPrecision(Record):
    """A kernel's results against the same operations in float64, on the kernel's real inputs:
    errors of earlier kernels do not count."""

    graph: str
    kernel: str
    """Id of its `Kernel` record."""
    call: Count
    outputs: tuple[OutputPrecision, ...] = ()
    within: bool | None = None
    """None if not compared."""
    reason: str = ""
    """Why not."""
    repro: TextHash = ""
    """A file that runs this kernel's graph alone: for the first kernel outside its bound, and for
    one that was requested."""
    reproduces: bool | None = None
    """Whether that file, run in a separate process, showed an error; None if it did not run to its
    end."""
    repro_note: str = ""
    """What it printed, or why there is no file."""


class ModeRow(Record):
    """One way to run the model, measured against eager in a separate process."""

    name: str
    """`eager`, `inductor`, `inductor reduce-overhead`, `tcw`, …"""
    engine: str = ""
    mode: str = ""
    eager: Timed | None = None
    """From the same rounds."""
    time: Timed | None = None
    speedup: Ratio = 1.0
    noise: Noise = 0.0
    compile_seconds: Seconds = 0.0
    """Wall seconds of the first call beyond its run time, with empty caches."""
    compile_cpu_seconds: Seconds | None = None
    peak_bytes: Bytes | None = None
    pays_after: Count | None = None
    """Calls after which compiling has paid off; None: never, or within the noise."""
    note: str = ""
    """Remarks, such as: same code as the default mode."""
    reason: str = ""
    """Why there are no figures."""


class Trial(Record):
    """A suggestion that was tried."""

    id: str
    """`override tcw/0/0/forward/fuse/exp+sum = no`, `mode reduce-overhead`, …"""
    words: str
    options: tuple[str, ...] = ()
    """Command-line options for it; empty if a person has to change the source."""
    diff: str = ""
    """Its source edits as a unified diff: tried on an in-memory copy."""
    group: str = ""
    """Trials in one group are alternatives."""
    before: Timed | None = None
    after: Timed | None = None
    difference: Seconds = 0.0
    noise: Noise = 0.0
    kept: bool = False
    equal: bool | None = None
    """`WhatIf.within`."""
    reason: str = ""
    """Why it was not kept, or not measured."""
    command: str = ""
    """The command line that profiles with it, if it was kept."""
