"""A compile that a person drives: runs, where it waits, what was asked, answered and noted."""

from __future__ import annotations

from typing import Literal

from compiler.trace.records.base import (
    Count,
    Error,
    Index,
    Location,
    Number,
    Part,
    Record,
    Seconds,
    TextHash,
)
from compiler.trace.records.measure import Timed
from compiler.trace.records.session import Settings, Stage


class Run(Record):
    """From here on the records are of this run of the model, until the next such record.

    Only a driven recording has them. What comes before the first, and sources, texts, notes and
    the end, belong to all; ids (`0/0`, `k4`) are those of one run.
    """

    number: Index
    """From 1; run 1 is the base."""
    settings: Settings
    """With the overrides of this run."""
    because: str = ""
    """What is different from the run that it is compared with: `veto tcw/0/0/forward/fuse/a+b`."""
    compared_with: Index = 0
    """Number of the run that it is compared with; 0 for none."""


class StageStart(Record):
    """A graph (or a call, where `graph` is "") enters a stage."""

    stage: Stage
    compile_id: str = ""
    graph: str = ""


class Forbidden(Part):
    """Why a choice of a decision is not legal."""

    choice: str
    rule: str
    reason: str


class Asked(Record):
    """A decision before its answer: all that there is to know before choosing.

    Written where the compile waits at a decision, before `Waiting`; `Decided` has the answer.
    """

    id: str
    graph: str
    kind: str
    """`fuse`, `inline`, `reuse`, `save`, `lowering`, `width`, …"""
    default: str
    """The engine's own choice."""
    choices: tuple[str, ...]
    rule: str = ""
    reason: str = ""
    numbers: dict[str, Number] = {}
    forbidden: tuple[Forbidden, ...] = ()
    first: tuple[str, ...] = ()
    """Scheduler nodes of the first side, where the decision is about two: `op9`, `op10`."""
    second: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    """Nodes of the lowered (or joint) graph that it is about."""
    if_fused: TextHash = ""
    """The loop nest that would become of both sides: of Inductor in the notation of
    `SchedulerNode.loops`, of tcw as the nest printer writes it."""
    sketched: bool = False
    """`if_fused` is put together from both sides by us: the engine makes the nest only later."""
    means: str = ""
    """What keeping apart means here: `two loop nests, which may share one C++ function`."""
    location: Location | None = None


WaitingKind = Literal[
    "start", "step", "graph", "pass", "decision", "stage", "event", "breakpoint", "end"
]
"""`event`: a break, a recompile, a cache miss. `end`: the run is over; the worker stays."""


class Waiting(Record):
    """The compile stands still until a command comes."""

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
    """Id of the `Asked` that waits for an answer; "" where nothing does."""
    breakpoint: Index = 0
    """Number of the breakpoint that stopped it; 0 for none."""
    location: Location | None = None


class Resumed(Record):
    """A command let the compile go on."""

    command: str
    """`step`, `over`, `continue`, …"""
    choice: str = ""
    """The answer to the decision that waited; "" for the engine's own."""
    seconds: Seconds = 0.0
    """How long it waited; taken off all compile times."""


class Refused(Record):
    """An answer that a rule forbids: the decision is still waiting."""

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


class WhatIf(Record):
    """Two runs compared by measurement, kernel by kernel or as a whole."""

    base: Index
    """Number of the run …"""
    run: Index
    """… and of the one that was compared with it."""
    scope: Literal["kernel", "graph", "call"]
    """What was timed: kernels that do the same work, a compiled graph, or a whole call."""
    graph: str = ""
    base_kernels: tuple[str, ...] = ()
    """Kernel ids of the base run that do this work; several where the other run fused them."""
    run_kernels: tuple[str, ...] = ()
    before: Timed | None = None
    after: Timed | None = None
    difference: Seconds = 0.0
    """Median of the paired differences, after - before, seconds; below 0 the new one is faster."""
    noise: Seconds = 0.0
    """Half width below which a difference says nothing, seconds."""
    pairs: Count = 0
    caches: Literal["warm", "cold"] = "warm"
    """State of the processor's caches before each run."""
    equal: bool | None = None
    """Whether the outputs of both are equal, bit for bit; None where it was not compared."""
    max_error: Error | None = None
    within: bool | None = None
    """Of whole calls: whether `torch.testing.assert_close` accepts them with its defaults."""
    reason: str = ""
    """Why it could not be measured, where `before` is None."""
