"""TorchDynamo: frames, instruction steps, graph breaks, guards, recompiles."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from compiler.trace.records.base import (
    Advice,
    Count,
    Index,
    Line,
    Location,
    Number,
    Part,
    Record,
    Seconds,
    TensorMeta,
    TextHash,
    Whole,
)


class FrameStart(Record):
    """Dynamo starts on a frame. A restart (graph break) starts it again with the next attempt."""

    compile_id: str
    """torch's `frame/compile`: `0/1` is the second compile of frame 0."""
    attempt: Index
    """0, then 1, 2 … for each restart of the same compile."""
    function: str
    location: Location
    """First line of the function, to its last."""
    call: Count
    resumes_at: Line | None = None
    """For a resume function: the user's line at which it goes on."""


class FrameEnd(Record):
    """Dynamo is done with a frame, after its last attempt."""

    compile_id: str
    status: Literal["compiled", "empty", "skipped", "failed"]
    """`empty`: traced without a tensor operation, so nothing was compiled."""
    seconds: Seconds
    cpu_seconds: Seconds = 0.0
    """CPU seconds of this process and of the children it waited for."""
    attempts: Count = 1
    reason: str = ""
    ops: Count = 0
    guards: Count = 0


class FrameSkipped(Record):
    """A frame that Dynamo looked at and left to Python."""

    function: str
    location: Location
    reason: str
    compile_id: str = ""
    call: Count = 0
    count: Count = 1


class Crossing(Part):
    """A value that has to live across a graph break."""

    name: str
    tensor: TensorMeta | None = None
    kind: str = ""
    """Kind of a value that is no tensor, in words."""


class GraphBreak(Record):
    """Dynamo ended a graph in the middle of the user's function."""

    compile_id: str
    attempt: Index
    gb: str
    """`GB0170`; "" where the registry of this torch has no code for the type."""
    type: str
    context: str
    explanation: str
    hints: tuple[str, ...]
    location: Location
    """The instruction's user line and column range."""
    stack: tuple[Location, ...] = ()
    """User frames, outermost first; the last is where it broke."""
    inside: Location | None = None
    """Where torch says that it broke, if that is inside a call of torch's or Python's own code."""
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
    """Types of the breaks that torch met while it handled this one: `graph break in loop`."""


class Guard(Part):
    """One condition under which a compiled frame may be used again."""

    kind: str
    """`TENSOR_MATCH`, `CONSTANT_MATCH`, … as torch names it."""
    name: str
    """What it looks at, in the user's terms: `x`, `self.ln1.weight`."""
    source: str
    """torch's source expression: `L['x']`."""
    code: tuple[str, ...] = ()
    """torch's text of its conditions; none where another guard's condition covers it."""
    value: str = ""
    """The value that is guarded, described; "" where there is none."""
    location: Location | None = None
    """The user's line that made Dynamo install it."""


class DynamicSize(Part):
    """A size (or other number) that a compile kept symbolic, so that other values of it hit."""

    symbol: str
    """As it stands in shapes: `s77`, or the expression that torch found it to be: `2*s0`."""
    name: str
    """In the user's terms: `x.size(0)`."""
    source: str
    """torch's source expression: `L['x'].size()[0]`."""
    value: Whole | float | None = None
    """Its value in the call that compiled."""
    lower: Whole | float | None = None
    """Least value that the guards accept; None where there is none …"""
    upper: Whole | float | None = None
    """… and the greatest."""


class Guards(Record):
    """All guards of one compile, in torch's order."""

    compile_id: str
    guards: tuple[Guard, ...]
    function: str = ""
    tree_nodes: Count = 0
    """Nodes of the C++ guard tree that is run on each call."""
    check_us: Number | None = None
    """Measured microseconds of one check of all of them, where torch can profile it."""
    dynamic: tuple[DynamicSize, ...] = ()
    """What the compile did not specialise on."""
    call: Count = 0


class FailedGuard(Part):
    """A cache entry that did not serve, and why."""

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
    """Guards that were run before it failed."""
    location: Location | None = None
    """The user's line that made Dynamo depend on the value, the argument in the signature, or the
    function's first line: the first that is known."""
    source_line: str = ""
    advice: tuple[Advice, ...] = ()
    """What would have let this entry serve."""


class Recompile(Record):
    """A frame that was compiled before had to be compiled again."""

    compile_id: str
    call: Count
    failed: tuple[FailedGuard, ...]
    """One per cache entry, the most recent entry first."""
    location: Location | None = None
    """That of the first failure; the function's first line where there is none."""
    source_line: str = ""
    function: str = ""
    """The wrapped function's name, for a wrapper of a module's forward."""
    reason: str = ""
    """torch's own text, whole."""
    advice: tuple[Advice, ...] = ()
    """That of the first failure."""


class EagerFallback(Record):
    """A frame or graph that was given up and runs eagerly from here on."""

    reason: str
    """Which limit or error, as torch says it."""
    kind: Literal["recompile-limit", "suppressed-error", "backend", "disabled", "other"]
    compile_id: str = ""
    function: str = ""
    location: Location | None = None
    call: Count = 0
    advice: tuple[Advice, ...] = ()


class StackValue(Part):
    """A symbolic value on Dynamo's stack or in its locals."""

    kind: str
    """Class of the variable tracker without its suffix: `Tensor`, `NNModule`, `Constant`."""
    node: str = ""
    """FX node that computes it."""
    source: str = ""
    value: str = ""


class NewGuard(Part):
    """A guard that Dynamo has just installed; `Guards` has all there is to know of it."""

    kind: str
    """`TENSOR_MATCH`, `CONSTANT_MATCH`, … as torch names it."""
    name: str
    """What it looks at, in the user's terms: `x`, `self.ln1.weight`."""


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
    """How many entries left the stack since the step before in this depth …"""
    pushed: tuple[StackValue, ...] = ()
    """… and which came, bottom first."""
    set_locals: dict[str, StackValue] = {}
    deleted_locals: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    """FX nodes added since the step before."""
    renamed: dict[str, str] = {}
    """FX nodes that the step before renamed, old name to new."""
    guards: Count = 0
    """Guards installed so far."""
    new_guards: tuple[NewGuard, ...] = ()
    """Those since the step before, of any depth of this attempt."""
    frame: Annotated[int, Meta(ge=-1, le=10_000_000)] = -1
    """Which of the attempt's frames, from 0 as they are met: a generator that goes on has the
    number that it had, another call of its function has one of its own. -1: not recorded."""


class Bytecode(Record):
    """The instructions of a function that Dynamo stepped through, once per code object."""

    function: str
    location: Location
    text: TextHash
    """One instruction a line, `ip opcode argument`."""
    lines: tuple[Line, ...] = ()
    """Source line of each instruction, 0 for one that has none."""
