"""Either engine: passes, lowering, fusion, memory, generated code, caches, phases."""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *
from tcw.compiler.trace.records.loops import LoopLine


class PassChange(Record):
    """An FX pass that changed a graph; passes that changed nothing leave no record."""

    graph: str
    """`0/0/joint`, `0/0/forward`, …"""
    name: str
    before: TextHash
    after: TextHash
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    seconds: Seconds = 0.0
    parent: str = ""
    """The enclosing pass, if passes nest."""


class Lowered(Record):
    """One FX node of the lowered graph, lowered to the engine's IR."""

    graph: str
    node: str
    target: str
    ir: str
    """IR class: `Pointwise`, `Reduction`, `ExternKernelOut`, `View`, …; in the tcw engine `Map`,
    `Reduce`, `Scan`, `Store`, `Call`, `Input`, or `View` if it adds no node."""
    operations: tuple[str, ...] = ()
    """Operations it realised (`op3`); empty if it stays lazy until a reader needs it."""
    fallback: str = ""
    """Why it is an ATen call, if it is one."""


class SchedulerNode(Record):
    """One node that the scheduler starts with."""

    graph: str
    name: str
    """`op3`."""
    kind: str
    """`pointwise`, `reduction`, `extern`, `template`, `nop`, …"""
    origins: tuple[str, ...]
    """Nodes of the lowered graph that it computes."""
    label: str
    """The same in words: `amax`, `exp, sum`."""
    domain: tuple[Size, ...] = ()
    """Iteration sizes, then reduction sizes, flattened as the scheduler groups them."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    read_bytes: Bytes | None = None
    write_bytes: Bytes | None = None
    touched: dict[str, Bytes] = {}
    """Bytes accessed in each buffer of `reads` and `writes`: for a view, what it shows. Omits
    unknown sizes."""
    parts: dict[str, Count] = {}
    """Which part of a buffer in `reads` is read: equal views have equal numbers throughout the
    graph. Omits buffers that are read whole, or for which it is unknown."""
    nest: tuple[LoopLine, ...] = ()
    """Its loop nest; empty for a call."""
    loops: TextHash = ""
    """The loop nest as text, in traces that do not have it in lines."""
    device: str = "cpu"


class FusionRound(Record):
    """One pass over all pairs."""

    graph: str
    round: Index
    fused: tuple[tuple[str, str, str], ...] = ()
    """(first, second, name of the fused node)."""


class FusionGroup(Part):
    name: str
    nodes: tuple[str, ...]
    kind: str
    label: str


class FusionGroups(Record):
    """The groups at the end of fusion: each becomes a loop nest or a call."""

    graph: str
    groups: tuple[FusionGroup, ...]


class Buffer(Part):
    """A buffer's live range, in steps of the final schedule."""

    name: str
    bytes: Bytes | None
    first: Index
    last: Index
    """Last step that reads it; the last step of the graph for an output."""
    kind: Literal["temporary", "input", "output", "saved"] = "temporary"
    reuses: str = ""
    """The buffer whose memory it reuses."""
    inplace: bool = False
    """The step that writes it still reads the buffer that it `reuses`."""
    alias_of: str = ""
    """The buffer that it is a view of; both live at once."""
    label: str = ""


class MemoryPlan(Record):
    """Allocation, reuse and lifetimes of one graph."""

    graph: str
    steps: tuple[str, ...]
    """What runs at each step: `k2 softmax`, `extern addmm`."""
    buffers: tuple[Buffer, ...]
    peak_bytes: Bytes | None = None
    """Most bytes of temporaries and outputs live at one step, with reuse."""
    without_reuse_bytes: Bytes | None = None
    """The same if each buffer had its own memory, freed after its last step. Equal to the peak if
    all reused memory would have been free by then: such reuse only saves allocations."""


class KernelLine(Part):
    """Where a line of a kernel comes from."""

    line: Line
    """Counts from 1 in the kernel's text."""
    nodes: tuple[str, ...] = ()
    locations: tuple[Location, ...] = ()
    inferred: bool = False


class NestLoops(Part):
    """A loop nest of a kernel, before it becomes code."""

    nodes: tuple[str, ...]
    """Scheduler nodes (`op3`) in it."""
    lines: tuple[LoopLine, ...] = ()
    """Its loops and operations, of Inductor."""
    text: TextHash = ""
    """Its loops and statements, as the nest printer of tcw writes them."""


class Kernel(Record):
    """One generated kernel, one library call, or random numbers that the engine draws itself."""

    id: str
    """`k4`: counts through the trace."""
    graph: str
    name: str
    """The generated function's name; `extern_kernels.addmm` for a call."""
    label: str
    """Words: `softmax`, `add + layer norm`."""
    language: Literal["cpp", "triton", "aten", "rng"]
    """What it is generated in; `aten`: a library call; `rng`: drawn by the engine's own library."""
    text: TextHash = ""
    nodes: tuple[str, ...] = ()
    """Scheduler nodes (`op3`) in it."""
    origins: tuple[str, ...] = ()
    """Nodes of the lowered graph that it computes."""
    locations: tuple[Location, ...] = ()
    """Distinct user lines, in file order."""
    lines: tuple[KernelLine, ...] = ()
    no_line: str = ""
    """Why there is no user line, if there is none."""
    loops: tuple[Line, ...] = ()
    """Lines of `text`, from 1, at which its outermost loops begin; C++ only."""
    loop_nests: Count = 0
    """Loop nests in its code; 0 for a call."""
    nests: tuple[NestLoops, ...] = ()
    """The nests, of every place that calls it; () for a template or a call."""
    predicted: bool = False
    """True: predicted for an absent GPU."""
    step: Index | None = None
    """Its index in `MemoryPlan.steps`; the first one if it is called several times."""
    steps: tuple[Index, ...] = ()
    """All its indices if it is called several times."""

    @property
    def generated(self) -> bool:
        """Whether code was generated for it."""
        return self.language in ("cpp", "triton")


class KernelBinary(Record):
    """A Triton kernel compiled for an architecture, without a GPU if `predicted`."""

    kernel: str
    """`k4`."""
    arch: str
    configuration: str
    """The chosen block sizes, warps and stages."""
    ttir: TextHash = ""
    ttgir: TextHash = ""
    llir: TextHash = ""
    ptx: TextHash = ""
    sass: TextHash = ""
    registers: Count | None = None
    shared_bytes: Bytes | None = None
    spill_bytes: Bytes | None = None
    """Local memory per thread that ptxas spilled to."""
    stack_bytes: Bytes | None = None
    resident_warps: Count | None = None
    """Warps that a processor holds at a time, by registers, shared memory and threads."""
    most_warps: Count | None = None
    """Warps that it could hold."""
    seconds: Seconds = 0.0
    predicted: bool = True
    error: str = ""


class Wrapper(Record):
    """The Python (or C++) that calls the kernels of one graph."""

    graph: str
    language: Literal["python", "cpp"]
    text: TextHash
    predicted: bool = False


class Collective(Part):
    """One step of a schedule that starts a collective operation, or waits for one."""

    tensors: tuple[TensorMeta, ...] = ()
    """What it sends, or is waited for."""
    arguments: tuple[str, ...] = ()
    """The others, by name: `reduce_op='sum'`, `group_name='0'`."""
    step: Index = 0
    """Its place among the graph's steps, from 0."""
    waits_for: Index | None = None
    """Of a wait: the place in `operations` of what it waits for."""
    meanwhile: Count = 0
    """Of a wait: kernels and library calls that run between the start and the wait."""
    meanwhile_bytes: Bytes = 0
    """Bytes that those read and write, as far as known."""
    origins: tuple[str, ...] = ()
    """Nodes of the lowered graph."""
    location: Location | None = None
    """The user's line, if it is known."""


class Collectives(Record):
    """The collective operations of one compile, in the order in which its code starts them."""

    compile_id: str
    operations: tuple[str, ...]
    """`torch.ops._c10d_functional.all_reduce_.default`, as torch names them; waits are among
    them."""
    graph: str = ""
    details: tuple[Collective, ...] = ()
    """Of each of `operations`; () if only their names are known, as in a log."""


class CacheLookup(Record):
    """A query of a compile cache."""

    cache: str
    """`fx graph`, `aot autograd`, `dynamo bytecode`, `kernel build`, …"""
    verdict: Literal["hit", "miss", "bypass"]
    compile_id: str = ""
    graph: str = ""
    key: str = ""
    missed: str = ""
    """What was missing, what changed since the nearest entry, or why it was bypassed."""
    saved_seconds: Seconds | None = None
    components: tuple[TextHash, ...] = ()
    """What the key is made of, as `key_components.key_texts` has it: settings, then the rest; empty
    if torch does not say."""


class CudagraphSkip(Record):
    """Kernels that are launched one by one, although CUDA graphs were asked for."""

    reason: str
    """In torch's words: `mutated inputs (1 instances)`."""
    compile_id: str = ""
    """Empty if it is not known."""
    location: Location | None = None
    """The user's line that torch holds responsible; None if it names none."""
    scope: Literal["graph", "part", "call"] = "graph"
    """What is launched: the graph, or its calls from now on (torch counts these as
    `cudagraph_skips`); a part of it, between the parts that are CUDA graphs; each call that finds
    outputs of an earlier one alive."""
    graph: str = ""
    """`0/0/forward`; empty if it is not known."""
    call: Count = 0


class CudagraphRecording(Record):
    """A CUDA graph was recorded: a later call replays it with one launch."""

    graph: str
    """What it runs: `0/0/forward`."""
    compile_id: str = ""
    part: str = ""
    """The part of the graph, if it was split: torch's `partition_0`."""
    sizes: tuple[Whole, ...] = ()
    """The values of the graph's symbolic sizes, each set of which needs a recording."""
    again: Count | None = 0
    """How often it had been recorded for these sizes before; None if that is not known."""
    reason: str = ""
    """Why none of the earlier recordings could be replayed, in torch's words: `static input data
    pointer changed`."""
    inputs: tuple[str, ...] = ()
    """The inputs that moved, by their names in the graph."""
    location: Location | None = None
    """The user's line that reads the first of them."""
    seconds: Seconds = 0.0
    """With the first replay."""
    bytes: Bytes | None = None
    """By how much the allocator's memory grew, with the run before it that warms up; None if not
    known."""
    call: Count = 0


class Phase(Record):
    """A timed phase that has ended. Children are within their parent in time."""

    id: Index
    name: str
    start: Seconds
    """Seconds since the recording started, on a clock that stops while the compile waits for a
    person or while the recording itself works."""
    seconds: Seconds
    parent: Index | None = None
    compile_id: str = ""
    call: Count = 0
    thread: Count = 0
    cpu_seconds: Seconds | None = None
    """CPU seconds of this process, all threads, and of children that it waited for during the
    phase; None if not read."""
