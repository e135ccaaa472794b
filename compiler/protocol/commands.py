"""Commands of a person to a running compile: one JSON line each, from the front end. No torch."""

from __future__ import annotations

from typing import Literal

import msgspec

from tcw.compiler.trace.records import Settings, Stage
from tcw.compiler.trace.records.base import Frozen, Part, kebab

Mode = Literal[
    "instruction", "over", "out", "line", "frame",
    "graph", "pass", "decision", "fusion", "any-decision", "stage", "continue", "cursor",
]  # fmt: skip
"""How far to continue.

`instruction`: Dynamo's next instruction, into inlined functions; `over`: the next instruction at
this depth or above; `out`: until the function has returned; `line`: the next user line at this
depth or above; `frame`: the next frame that Dynamo starts; `graph`, `pass`, `stage`: the next of
that kind; `decision`: the next decision that `matters`; `fusion`: the next fusion decision;
`any-decision`: the next decision of any kind; `cursor`: until `Go.until` is reached; `continue`:
until a breakpoint. In every mode the compile also stops at breakpoints and at the end of the run.
"""


class Command(
    msgspec.Struct,
    metaclass=Frozen,
    frozen=True,
    kw_only=True,
    tag_field="command",
    tag=kebab,
    omit_defaults=True,
):
    """One line of the command pipe, after the job."""


class Breakpoint(Part):
    """Where to stop. Every field that is set must match."""

    number: int
    """The breakpoint's number, from 1."""
    kind: Literal["line", "op", "stage", "decision", "rejection", "break", "recompile", "miss"]
    """`rejection`: a fusion whose default is to keep apart; `miss`: a cache miss."""
    file: str = ""
    line: int = 0
    """With `line`: Dynamo's first instruction on that user line; in later stages, the first record
    of something from that line."""
    op: str = ""
    """With `op`: part of the name of an FX node or its target, `softmax`."""
    stage: Stage | Literal[""] = ""
    decision: str = ""
    """With `decision` or `rejection`: the kind of decision, `fuse`; "" for any."""
    id: str = ""
    """With `decision`: only the decision with this id."""
    rule: str = ""
    number_name: str = ""
    """With `decision` or `rejection`: the name of one of the decision's numbers, `saved_bytes`, or
    part of a name, `bytes`."""
    at_least: float | None = None
    """The lower bound of that number."""
    at_most: float | None = None
    once: bool = False
    """The breakpoint is spent once it has stopped the compile."""
    enabled: bool = True


class Go(Command):
    """Let a waiting compile continue. If it waits at a decision, `choice` answers it."""

    mode: Mode
    choice: str = ""
    """One of the decision's choices; "" for the engine's own."""
    until: Breakpoint | None = None
    """With `cursor`."""


class Answer(Command):
    """Answer the waiting decision, then continue in the last mode; if a rule forbids the choice,
    keep waiting. A `choice` of "" takes the engine's own. An explicit `apart` is a veto, which
    keeps the two nodes apart on every path."""

    id: str
    choice: str


class SetBreakpoints(Command):
    """Replace all breakpoints from now on."""

    breakpoints: tuple[Breakpoint, ...]


class Pause(Command):
    """Stop at the next place where the compile can stop."""


class Rerun(Command):
    """Compile again once the run is over; a running one continues to its end without waiting.

    The model and inputs are those of run 1 as they were before it, weights included.
    """

    settings: Settings
    because: str = ""
    compare_with: int = 0
    """Number of the run to compare with; 0 for none."""
    measure: bool = True
    """With `compare_with`: time the changed parts of both runs in turn."""
    wait: bool = False
    """Wait at the start, as run 1 does; else continue until a breakpoint or `until`."""
    until: Breakpoint | None = None
    """Where to stop if it is reached."""


class Try(Command):
    """Run the file once more with other settings, in a process of its own, to see what they
    change."""

    number: int
    """From 1: without a fix, which the others are compared with."""
    settings: Settings
    seconds: float
    """After so long it is given up."""
    eager: bool = False
    """Compile nothing: what others are compared with where the calls fail without a fix."""


class Measure(Command):
    """Time two finished runs against each other."""

    base: int
    run: int
    scope: Literal["kernel", "graph", "call"] = "call"


class TimeCalls(Command):
    """Time whole calls of a finished run: one turn, while other processes have theirs after it."""

    run: int
    rounds: int
    """Calls with each input set."""


class Stop(Command):
    """End the recording: the worker exits with status `interrupted`."""


AnyCommand = Try | Go | Answer | SetBreakpoints | Pause | Rerun | Measure | TimeCalls | Stop
