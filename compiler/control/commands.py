"""What a person tells a running compile: one JSON line each, from the front end. No torch."""

from __future__ import annotations

from typing import Literal

import msgspec

from compiler.trace.records import Settings, Stage
from compiler.trace.records.base import Frozen, Part, kebab

Mode = Literal[
    "instruction", "over", "out", "line", "frame",
    "graph", "pass", "decision", "fusion", "any-decision", "stage", "continue", "cursor",
]  # fmt: skip
"""How far to go on.

`instruction`: Dynamo's next instruction, into inlined functions; `over`: the next at this depth or
above; `out`: until the function has returned; `line`: the next user line at this depth or above;
`frame`: the next frame that Dynamo starts on; `graph`, `pass`, `stage`: the next of that kind;
`decision`: the next that `matters`; `fusion`: the next about a fusion; `any-decision`: the next of
any kind; `cursor`: until `Go.until` is reached; `continue`: until a breakpoint. Whatever the
mode, breakpoints stop it as well, and the end of the run.
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
    """Where to stop. All fields that are set must hold."""

    number: int
    """Names it, from 1."""
    kind: Literal["line", "op", "stage", "decision", "rejection", "break", "recompile", "miss"]
    """`rejection`: a fusion whose default is to keep apart; `miss`: a cache that was asked."""
    file: str = ""
    line: int = 0
    """With `line`: the first instruction of Dynamo on that user line; in later stages, the first
    record of a thing from that line."""
    op: str = ""
    """With `op`: part of the name of an FX node or of its target, `softmax`."""
    stage: Stage | Literal[""] = ""
    decision: str = ""
    """With `decision` or `rejection`: the kind of decision, `fuse`; "" for any."""
    id: str = ""
    """With `decision`: only the decision with this id."""
    rule: str = ""
    number_name: str = ""
    """With `decision` or `rejection`: a number of the decision, `saved_bytes`, or part of its name,
    `bytes` …"""
    at_least: float | None = None
    """… that must be at least this."""
    at_most: float | None = None
    once: bool = False
    """It is gone after it has stopped the compile once."""
    enabled: bool = True


class Go(Command):
    """Let a waiting compile go on. Where a decision waits, `choice` answers it."""

    mode: Mode
    choice: str = ""
    """One of the decision's choices; "" for the engine's own."""
    until: Breakpoint | None = None
    """With `cursor`."""


class Answer(Command):
    """Choose at the waiting decision and stay there where a rule forbids it; else go on as the
    last mode says. `choice` "" takes the engine's own: to name `apart` is a veto, by any road."""

    id: str
    choice: str


class SetBreakpoints(Command):
    """All breakpoints from now on, in place of those before."""

    breakpoints: tuple[Breakpoint, ...]


class Pause(Command):
    """Stop at the next place where the compile can stop."""


class Rerun(Command):
    """When the run is over (a running one goes on to its end without waiting): compile again.

    Run 1's model and inputs are taken as they were before it, weights included.
    """

    settings: Settings
    because: str = ""
    compare_with: int = 0
    """Number of the run to compare with; 0 for none."""
    measure: bool = True
    """With `compare_with`: time what changed, of both, in turn."""
    wait: bool = False
    """Wait at its start, as run 1 does; else it goes on until a breakpoint, or …"""
    until: Breakpoint | None = None
    """… until this is reached, if it is."""


class Measure(Command):
    """Time two finished runs against each other."""

    base: int
    run: int
    scope: Literal["kernel", "graph", "call"] = "call"


class Stop(Command):
    """End the recording: the worker leaves with status `interrupted`."""


AnyCommand = Go | Answer | SetBreakpoints | Pause | Rerun | Measure | Stop
