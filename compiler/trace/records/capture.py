"""TorchDynamo: frames, instruction steps, graph breaks, guards, recompiles."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from tcw.compiler.trace.records.base import *


class FrameStart(Record):
    """Dynamo starts a frame. A restart (graph break) starts it again as the next attempt."""

    compile_id: str
    """torch's `frame/compile`: `0/1` is the second compile of frame 0."""
    attempt: Index
    """0, then 1, 2 … for each restart of the same compile."""
    function: str
    location: Location
    """The lines of the function, first to last."""
    call: Count
    resumes_at: Line | None = None
    """For a resume function: the user's line at which it continues."""
    wrapped: Location | None = None
    """For the wrapper of a module's forward, as transformers has: that forward's lines."""

    @property
    def called(self) -> str:
        """The function that the caller means: the wrapped one of a wrapper."""
        return self.wrapped.function if self.wrapped is not None else self.function


class FrameEnd(Record):
    """Dynamo has finished a frame, after its last attempt."""

    compile_id: str
    status: Literal["compiled", "empty", "skipped", "failed"]
    """`empty`: traced, but without tensor operations, so nothing was compiled."""
    seconds: Seconds
    cpu_seconds: Seconds = 0.0
    """CPU seconds of this process and of the children it waited for."""
    attempts: Count = 1
    reason: str = ""
    ops: Count = 0
    guards: Count = 0


class FrameSkipped(Record):
    """A frame that Dynamo considered and left to Python."""

    function: str
    location: Location
    reason: str
    compile_id: str = ""
    call: Count = 0
    count: Count = 1


class Crossing(Part):
    """A value that is live across a graph break."""

    name: str
    tensor: TensorMeta | None = None
    kind: str = ""
    """Kind of a non-tensor value, in words."""


class GraphBreak(Record):
    """Dynamo ended a graph in the middle of the user's function."""

    compile_id: str
    attempt: Index
    gb: str
    """`GB0170`; "" if this torch's registry has no code for the type."""
    type: str
    context: str
    explanation: str
    hints: tuple[str, ...]
    location: Location
    """The instruction's user line and column range."""
    stack: tuple[Location, ...] = ()
    """User frames, outermost first; the last is where it broke."""
    inside: Location | None = None
    """Where torch reports the break, if inside a call of torch's or Python's own code."""
    opcode: str = ""
    url: str = ""
    source_line: str = ""
    outcome: Literal["break", "skip-frame", "error"] = "break"
    """`skip-frame`: no graph could be kept, the whole frame runs in Python."""
    crossing: tuple[Crossing, ...] = ()
    advice: tuple[Advice, ...] = ()
    call: Count = 0
    reason: str = ""
    """First line of torch's own reason text."""
    then: tuple[str, ...] = ()
    """Types of further breaks that torch hit while handling this one: `graph break in loop`."""


class Guard(Part):
    """One condition for reusing a compiled frame."""

    kind: str
    """`TENSOR_MATCH`, `CONSTANT_MATCH`, … as torch names it."""
    name: str
    """What it checks, in the user's terms: `x`, `self.ln1.weight`."""
    source: str
    """torch's source expression: `L['x']`."""
    code: tuple[str, ...] = ()
    """torch's text of its conditions; none if another guard's condition covers it."""
    value: str = ""
    """A description of the guarded value; "" if there is none."""
    values: tuple[str, ...] = ()
    """Of conditions on sizes: each of `code` in the user's terms."""
    attribute: str = ""
    """The attribute that the object must not have itself (`NOT_PRESENT_IN_GENERIC_DICT`)."""
    location: Location | None = None
    """The user's line that made Dynamo install it."""
    lines: tuple[Location | None, ...] = ()
    """Of conditions on sizes: the user's line behind each of `code`, as far as torch names it."""


class DynamicSize(Part):
    """A size (or other number) that a compile kept symbolic, so that other values match too."""

    symbol: str
    """As in shapes: `s77`, or the expression that torch derived for it: `2*s0`."""
    name: str
    """In the user's terms: `x.size(0)`."""
    source: str
    """torch's source expression: `L['x'].size()[0]`."""
    value: Whole | float | None = None
    """Its value in the call that compiled."""
    lower: Whole | float | None = None
    """The least value that the guards accept; None if unbounded."""
    upper: Whole | float | None = None
    """The greatest value that the guards accept; None if unbounded."""


class SpecialisedSize(Part):
    """A size (or other number) that was symbolic until a line made torch treat it as a constant."""

    name: str
    """In the user's terms: `x.size(0)`."""
    location: Location | None = None
    """The user's line that did so: `for _ in range(x.shape[0])`."""


class Guards(Record):
    """All guards of one compile, in torch's order."""

    compile_id: str
    guards: tuple[Guard, ...]
    function: str = ""
    tree_nodes: Count = 0
    """Nodes of the C++ guard tree that runs on each call."""
    check_us: Number | None = None
    """Measured microseconds of checking all of them once, if torch can profile it."""
    warm_us: Number | None = None
    """The same with warm caches, as in calls that follow each other."""
    dynamic: tuple[DynamicSize, ...] = ()
    """The sizes that the compile did not specialise on."""
    specialised: tuple[SpecialisedSize, ...] = ()
    """Those that it began as symbols, and then specialised."""
    call: Count = 0
    counted: Count = 0
    """How many guards torch counted, where `guards` has one for each thing that is checked (a log);
    0: as many as `guards`."""

    @property
    def count(self) -> int:
        return self.counted or len(self.guards)


class FailedGuard(Part):
    """A cache entry that did not match, and why."""

    entry: str
    """Compile id of the entry that was tried."""
    guard: str
    """torch's text of the condition that failed."""
    kind: str = ""
    source: str = ""
    name: str = ""
    expected: str = ""
    seen: str = ""
    tested: Count = 0
    """Guards that passed before it failed."""
    location: Location | None = None
    """The user's line that made Dynamo depend on the value, the argument in the signature, or the
    function's first line: the first one known."""
    source_line: str = ""
    advice: tuple[Advice, ...] = ()
    """What would have made this entry match."""


class Recompile(Record):
    """A frame that had been compiled before was compiled again."""

    compile_id: str
    call: Count
    failed: tuple[FailedGuard, ...]
    """One per cache entry, the most recent entry first."""
    location: Location | None = None
    """The location of the first failure; the function's first line if there is none."""
    source_line: str = ""
    function: str = ""
    """The wrapped function's name, for a wrapper of a module's forward."""
    reason: str = ""
    """torch's full text."""
    advice: tuple[Advice, ...] = ()
    """The advice of the first failure."""


class EagerFallback(Record):
    """A frame or graph that torch gave up on and runs eagerly from here on."""

    reason: str
    """The limit or error, in torch's words."""
    kind: Literal["recompile-limit", "suppressed-error", "backend", "disabled", "other"]
    compile_id: str = ""
    function: str = ""
    location: Location | None = None
    call: Count = 0
    advice: tuple[Advice, ...] = ()
    stops: bool = False
    """torch raises an error instead of running it eagerly, as is set or with `fullgraph=True`."""

    @property
    def by_limit(self) -> bool:
        """Whether the frame had reached torch's limit of recompiles."""
        return self.kind == "recompile-limit"


class EagerShare(Record):
    """What a function of the user's runs that torch left to Python, as the eager call shows."""

    call: Count
    function: str
    location: Location
    """As in the `FrameStart` of a skipped frame; else the line of the graph break inside it."""
    operations: tuple[str, ...]
    """The ATen operations that run outside the functions that torch compiled, the most frequent
    first."""
    count: Count
    """How often they run in all."""
    share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Of the time of all operations of the call, which ran once, in eager."""


class DdpBucket(Part):
    """A part of a captured graph whose parameters DDP reduces together."""

    number: Index
    """From 1, in the order in which the backward has the gradients ready: the forward's last part
    is bucket 1. Its graphs are `0/0/bucket1/forward`, …"""
    bytes: Bytes
    """Of its parameters."""
    limit: Bytes
    """The size from which on it was full."""
    parameters: tuple[str, ...]
    """Parameters that need gradients, last used first."""
    nodes: Count
    """Nodes of the captured graph."""
    extended: Count = 0
    """Nodes that were added when it was full, since no value left it before them."""
    extended_bytes: Bytes = 0
    """Of the parameters that came with them."""
    first: Location | None = None
    """The user's line of its first node that has one."""
    last: Location | None = None
    """The user's line of its last node that has one."""


class DdpBuckets(Record):
    """How DDP's optimizer cut a captured graph (torch/_dynamo/backends/distributed.py): each bucket
    is compiled by itself, so that its gradients can be reduced while the backward goes on."""

    compile_id: str
    buckets: tuple[DdpBucket, ...]
    """In the order of their numbers. One: the graph was not cut."""
    bucket_bytes: Bytes
    """`bucket_cap_mb` of DistributedDataParallel, in bytes."""
    first_bucket_bytes: Bytes
    """The smaller limit of the first bucket, so that the first all-reduce starts early."""


class EagerCollective(Record):
    """The program starts a collective operation outside a graph. Of those that are alike (the
    same operation, sizes and line) the first 16 are recorded, then each 2^n-th."""

    operation: str
    """As `torch.distributed` names it: `all_reduce`, `reduce_scatter_tensor`."""
    tensors: tuple[TensorMeta, ...] = ()
    """What this rank gives; () for operations to which the ranks give different tensors."""
    ranks: Count = 0
    """Of its process group."""
    group: str = ""
    """torch's name of the group, which may be another one on each rank."""
    number: Count = 0
    """Its number among those of this process since the recording started."""
    count: Count = 0
    """Its number among those that are alike."""
    location: Location | None = None
    """The user's line; None for one that torch starts without any."""
    call: Count = 0


class StackValue(Part):
    """A symbolic value on Dynamo's stack or in its locals."""

    kind: str
    """Class of the variable tracker without its suffix: `Tensor`, `NNModule`, `Constant`."""
    node: str = ""
    """FX node that computes it."""
    source: str = ""
    value: str = ""


class NewGuard(Part):
    """A guard that Dynamo has just installed; `Guards` has the details."""

    kind: str
    """`TENSOR_MATCH`, `CONSTANT_MATCH`, … as torch names it."""
    name: str
    """What it checks, in the user's terms: `x`, `self.ln1.weight`."""


class Step(Record):
    """One bytecode instruction, before Dynamo runs it. Stack and locals are deltas."""

    compile_id: str
    attempt: Index
    step: Index
    """Counts from 0 within the attempt."""
    depth: Index
    """0 in the frame itself, 1 in a function inlined into it, …"""
    function: str
    location: Location
    ip: Index
    opcode: str
    argument: str = ""
    popped: Count = 0
    """The number of entries that left the stack since the previous step at this depth."""
    pushed: tuple[StackValue, ...] = ()
    """The entries that were pushed since then, bottom first."""
    set_locals: dict[str, StackValue] = {}
    deleted_locals: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    """FX nodes added since the previous step."""
    renamed: dict[str, str] = {}
    """FX nodes that the previous step renamed, old name to new."""
    guards: Count = 0
    """Guards installed so far."""
    new_guards: tuple[NewGuard, ...] = ()
    """Guards installed since the previous step, at any depth of this attempt."""
    frame: Annotated[int, Meta(ge=-1, le=10_000_000)] = -1
    """Which of the attempt's frames, numbered from 0 in order of entry: a resumed generator keeps
    its number, another call of its function gets a new one. -1: not recorded."""


class Bytecode(Record):
    """The instructions of a function that Dynamo stepped through, once per code object."""

    function: str
    location: Location
    text: TextHash
    """One instruction per line, `ip opcode argument`."""
    lines: tuple[Line, ...] = ()
    """Source line of each instruction, 0 if it has none."""
