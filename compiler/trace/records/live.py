"""A driven compile: runs, where it waits, what was asked, chosen and noted."""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *
from tcw.compiler.trace.records.measure import Timed
from tcw.compiler.trace.records.session import Settings, Stage


class Run(Record):
    """From here on, the records belong to this run of the model, until the next such record.

    Only a driven recording has them. Records before the first one, and sources, texts, notes and
    the end, belong to all runs; ids (`0/0`, `k4`) are those of one run.
    """

    number: Index
    """From 1; run 1 is the base."""
    settings: Settings
    """Including the overrides of this run."""
    because: str = ""
    """How it differs from the run that it is compared with: `veto tcw/0/0/forward/fuse/a+b`."""
    compared_with: Index = 0
    """Number of the run that it is compared with; 0 for none."""


class StageStart(Record):
    """A graph (or a call, where `graph` is "") enters a stage."""

    stage: Stage
    compile_id: str = ""
    graph: str = ""


WaitingKind = Literal[
    "start", "step", "graph", "pass", "decision", "stage", "event", "breakpoint", "end"
]
"""`event`: a break, a recompile, a cache miss. `end`: the run is over; the worker stays."""


class Waiting(Record):
    """The compile waits for a command."""

    number: Index
    """Counts from 1 in the run."""
    kind: WaitingKind
    why: str
    """`step over`, `breakpoint 2: model.py:19`, `first rejected fusion`, …"""
    stage: Stage
    compile_id: str = ""
    attempt: Index = 0
    graph: str = ""
    decision: str = ""
    """Id of the open `Decided` that waits for a choice; "" if none does."""
    breakpoint: Index = 0
    """Number of the breakpoint that stopped it; 0 for none."""
    lost: bool = False
    """Its process ended before the run was over."""
    location: Location | None = None


class Resumed(Record):
    """A command resumed the compile."""

    command: str
    """`step`, `over`, `continue`, …"""
    choice: str = ""
    """The choice for the decision that waited; "" for the engine's own."""
    seconds: Seconds = 0.0
    """How long it waited; excluded from all compile times."""


class Refused(Record):
    """A choice that a rule forbids: the decision is still waiting."""

    id: str
    choice: str
    rule: str
    reason: str


class Note(Record):
    """A reader's words, attached to a thing of the trace. A later note on the same thing replaces
    it; an empty text removes it."""

    on: str
    """A ref (`src:FILE:LINE`, `fx:GRAPH/NODE`), or `decision:ID`."""
    text: str
    run: Index = 0


class CallTimes(Record):
    """One turn of a run whose calls are timed while another process has its turns in between."""

    run: Index
    seconds: tuple[Seconds, ...] = ()
    """Of each round: the mean over the input sets. Empty if the run cannot be called again."""
    reason: str = ""
    """Why there are none."""


class WhatIf(Record):
    """Two runs compared by measurement, kernel by kernel or as a whole."""

    base: Index
    """The number of the base run."""
    run: Index
    """The number of the run that is compared with it."""
    scope: Literal["kernel", "graph", "call"]
    """What was timed: kernels that do the same work, a compiled graph, or a whole call."""
    graph: str = ""
    base_kernels: tuple[str, ...] = ()
    """Kernel ids of the base run that do this work; several if the other run fused them."""
    run_kernels: tuple[str, ...] = ()
    before: Timed | None = None
    after: Timed | None = None
    difference: Seconds = 0.0
    """Median of the paired differences, after - before, seconds; negative if the new one is
    faster."""
    noise: Noise = 0.0
    """Half width below which a difference means nothing, seconds."""
    pairs: Count = 0
    caches: Literal["warm", "cold"] = "warm"
    """State of the processor's caches before each run."""
    equal: bool | None = None
    """Whether the outputs of both are bitwise equal; None if not compared."""
    max_error: Error | None = None
    within: bool | None = None
    """For whole calls: whether `torch.testing.assert_close` accepts them with its defaults against
    the base's, or else `Numerics.within` against eager."""
    compiled_off: Error | None = None
    """If `assert_close` rejects them: see `Numerics.compiled_off`."""
    eager_off: Error | None = None
    rounding: Error | None = None
    note: str = ""
    """If `assert_close` rejects them: `Numerics.note`."""
    reason: str = ""
    """Why it could not be measured, if `before` is None."""
