"""One call taken apart: what each step of the compiled code took, and what the eager call did.

All times are seconds, read in the real call, in rounds that alternate the two sides. `phase` is
"" outside of training. What is derived (shares of the roofline, causes) is the viewers' work.
"""

from __future__ import annotations

from typing import Literal

from compiler.trace.records.base import (
    Bytes,
    Count,
    Error,
    Index,
    Line,
    Location,
    Number,
    Part,
    Ratio,
    Record,
    Seconds,
    TensorMeta,
    TextHash,
    UnixTime,
)
from compiler.trace.records.measure import Timed

CallPhase = Literal["", "forward", "backward", "step"]
Unmeasured = Literal["eager", "compiled", "guards"]
"""The eager operations, the steps of compiled graphs, the cost of guards."""


class Bandwidth(Part):
    """What a copy of this working set reached."""

    bytes: Bytes
    """Read and written together."""
    per_second: Number
    """Bytes, read and written together."""


class Ceilings(Record):
    """What this machine can do at most, measured by us once and kept in our cache."""

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
    """It was measured by an earlier recording on this machine."""
    partial: bool = False
    """What a busy machine disturbed is left out; of sets beyond the largest nothing is known."""
    note: str = ""
    """What the figures hold under: `float32 products in precision 'high'`."""


class EagerOperation(Record):
    """One ATen operation of the eager call."""

    id: str
    """`e17`: counts through the trace."""
    call: Count
    operation: str
    """`aten.addmm.default`."""
    phase: CallPhase = ""
    arguments: str = ""
    """As they read in a call, tensors as `f32[4, 128]`: `f32[512, 64], None, dim=-1`."""
    inputs: tuple[TensorMeta, ...] = ()
    outputs: tuple[TensorMeta, ...] = ()
    time: Timed | None = None
    """On a GPU that of its kernels, by the device's own clock."""
    host: Timed | None = None
    """Host time, where it is not the same."""
    launches: Count = 0
    """Kernels on a GPU; on a CPU 1, and 0 of an operation that touches no memory (a view)."""
    kernels: tuple[str, ...] = ()
    """The GPU's names of those."""
    read_bytes: Bytes | None = None
    write_bytes: Bytes | None = None
    flops: Count | None = None
    location: Location | None = None
    """The user's line; in a backward that of the forward operation."""
    stack: tuple[Location, ...] = ()
    """Outermost first; only where it holds more than `location`."""
    module: str = ""
    """Path of the module it ran in: `layers.0.attention`."""
    of: str = ""
    """In a backward: id of the forward operation whose gradient it makes."""
    part: Literal["model", "loss", "gradients", "optimizer"] = "model"
    """`loss`: made by tcw, so that there is a backward; `gradients`: adding them to parameters."""


class CompiledStep(Record):
    """One step of the compiled call: a kernel, a call into ATen, or what lies between graphs."""

    id: str
    """`s12`: counts through the trace."""
    call: Count
    kind: Literal["kernel", "aten", "eager"]
    """`eager`: an operation that ran outside of all graphs: between breaks, a loss, gradients."""
    name: str
    """The generated function, `extern_kernels.addmm`, or the ATen operation."""
    phase: CallPhase = ""
    graph: str = ""
    """`0/0/forward`; "" of an eager one."""
    index: Index = 0
    """Its place in its graph's code, from 0."""
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


Sameness = Literal["calls", "library", "kernels", ""]
"""`calls`: the same ATen calls on tensors of the same sizes and strides; `library`: library calls
that move as much, on other strides; `kernels`: a kernel for each operation that moves what it
moves; "" of other work."""


class Region(Record):
    """Compiled steps and the eager operations that they replaced: the smallest sets of both that
    share no line of one module with another region."""

    id: str
    """`r3`: counts through the trace."""
    call: Count
    label: str
    """Words: `softmax`, `add + layer norm`."""
    phase: CallPhase = ""
    steps: tuple[str, ...] = ()
    """Ids of `CompiledStep`; empty where the compiled code does nothing of the kind."""
    operations: tuple[str, ...] = ()
    """Ids of `EagerOperation`; empty where this exists only under capture."""
    locations: tuple[Location, ...] = ()
    """User lines, distinct, in file order."""
    modules: tuple[str, ...] = ()
    eager: Timed | None = None
    compiled: Timed | None = None
    difference: Seconds = 0.0
    """Compiled - eager: the median over the rounds, or the difference of the medians, whichever
    is surer; below 0 compiling won."""
    noise: Seconds = 0.0
    """max(3 MAD of it at nine rounds, less of more; 1% of eager), and of ATen operations that both
    sides call, on a CPU, what a call from Python takes: it is in the time of the compiled side
    alone. Inside it is no difference."""
    same: Sameness = ""
    """How far both sides do the same work. `noise` of the same calls is 5% of eager at least; on a
    contended machine all of it, as of other library calls, and a third of kernels."""


class AccountLine(Part):
    """A summand of a call's time."""

    name: str
    """`kernels`, `aten`, `wrapper` (the code that calls them), `guards`, `dispatch` (AOTAutograd's
    and Dynamo's wrappers, autograd), `eager` (outside of all graphs); of the eager side
    `operations` and `dispatch` (Python, modules, autograd). Of a GPU `idle` in place of what the
    host does meanwhile."""
    time: Timed
    what: str = ""
    """What it is, for a person: `14 loops`, `checks of 120 guards`."""


class Account(Record):
    """Where the time of one side's call goes. The lines are measured apart from the whole."""

    side: Literal["eager", "compiled"]
    call: Count
    measured: Timed
    """The plain call, with nothing of ours in it, less what its thread waited for a processor."""
    lines: tuple[AccountLine, ...]
    remainder: Seconds
    """measured - sum of the lines: what they do not explain; below 0 they say too much."""
    remainder_noise: Seconds = 0.0
    """Seconds that it may be off, as the medians of both calls are: a remainder within it is none.
    0 where that is not known."""
    phase: CallPhase = ""
    """"" is the whole call; in training there is one of each phase, too."""


class CallProfile(Record):
    """The head of one profiled call: its regions, steps, operations and accounts came before."""

    call: Count
    what: str
    """`forward`, `forward + backward`, `forward + backward + step`."""
    device: str
    eager: Timed
    compiled: Timed
    speedup: Ratio
    """eager/compiled: the median over the rounds, or of the medians, whichever is surer."""
    noise: Number
    """max(3 MAD of it, 1%), as a share of it."""
    rounds: Count
    """Of the plain calls; those under probes that count may be more, or fewer."""
    contended: bool = False
    """Others used the processors as well: for more than a tenth of the calls' time a thread had to
    wait for one. Each was kept on a processor of its own then."""
    clock: Literal["host", "device"] = "host"
    compiled_again: Count = 0
    """Graphs that were compiled while the clock ran: then the times say nothing."""
    eager_peak_bytes: Bytes | None = None
    """The most that one call adds to what is allocated."""
    compiled_peak_bytes: Bytes | None = None
    eager_saved_bytes: Bytes | None = None
    """What autograd keeps from forward to backward, beyond parameters and inputs."""
    compiled_saved_bytes: Bytes | None = None
    unmeasured: str = ""
    """What could not be measured, and why."""
    unmeasured_sides: tuple[Unmeasured, ...] = ()
    """What `unmeasured` speaks of; empty beside a reason: it may be any."""


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
    """Of its outermost loop in the kernel's text, from 1."""
    time: Timed
    """All calls of the kernel together."""


class KernelNests(Record):
    """The loop nests of a kernel that has several, each timed by itself: the kernel was built once
    more, with a clock around each, and called in rounds of its own."""

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
    """What eager's own operations err by on the same inputs."""
    bound: Error
    """What is let pass; an error above it is wrong."""
    lean: Error = 0.0
    """How far all of it is off to one side, relative to it: rounding errs to both. 0 where the
    bound is so close that the error alone tells."""
    lean_bound: Error = 0.0
    note: str = ""
    """`nan in compiled only`, …"""


class KernelPrecision(Record):
    """A kernel's results against the same operations in float64, from the inputs that the kernel
    really had: errors of earlier kernels are none of its own."""

    graph: str
    kernel: str
    """Id of its `Kernel` record."""
    call: Count
    outputs: tuple[OutputPrecision, ...] = ()
    within: bool | None = None
    """None where it was not compared."""
    reason: str = ""
    """Why not."""
    repro: TextHash = ""
    """A file that runs this kernel's graph alone: of the first kernel that is outside of its bound,
    and of one that was asked for."""
    reproduces: bool | None = None
    """Whether that file, run in a process of its own, showed an error; None: it was not run to its
    end."""
    repro_note: str = ""
    """What it printed, or why there is no file."""


class ModeRow(Record):
    """One way to run the model, measured against eager in a process of its own."""

    name: str
    """`eager`, `inductor`, `inductor reduce-overhead`, `tcw`, …"""
    engine: str = ""
    mode: str = ""
    eager: Timed | None = None
    """Of the same rounds."""
    time: Timed | None = None
    speedup: Ratio = 1.0
    noise: Number = 0.0
    compile_seconds: Seconds = 0.0
    """Wall, of the first call beyond its run time, from empty caches."""
    compile_cpu_seconds: Seconds | None = None
    peak_bytes: Bytes | None = None
    pays_after: Count | None = None
    """Calls after which compiling has paid for itself; None: never, or inside the noise."""
    note: str = ""
    """What else there is to know: that the code is the default mode's."""
    reason: str = ""
    """Why there are no figures."""


class Trial(Record):
    """Something that was suggested, and tried."""

    id: str
    """`override tcw/0/0/forward/fuse/exp+sum = no`, `mode reduce-overhead`, …"""
    words: str
    options: tuple[str, ...] = ()
    """Command line options that ask for it; empty where a person has to change the source."""
    diff: str = ""
    """What it changes in the source, as a unified diff: tried on a copy, in memory."""
    group: str = ""
    """Trials of one group are ways to do one thing."""
    before: Timed | None = None
    after: Timed | None = None
    difference: Seconds = 0.0
    noise: Seconds = 0.0
    kept: bool = False
    equal: bool | None = None
    """Whether outputs are the same within `assert_close`'s defaults."""
    reason: str = ""
    """Why it was not kept, or not measured."""
    command: str = ""
    """The command line that profiles with it, where it was kept."""
