"""What a profile is in the object of `--json` (docs/json.md): seconds, bytes, shares from 0 to 1.

What was not measured is null.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from viewers.summary.profile import Standing


class Item(msgspec.Struct, kw_only=True):
    """A part of the report; every key is always there."""


class TimedItem(Item):
    seconds: float
    """Median over the rounds."""
    spread: float
    """max(3 MAD, 1%) of it, in seconds."""


class PlaceItem(Item):
    file: str
    line: int


class WorkItem(Item):
    """One side of a region, a kernel, or an operation."""

    time: TimedItem | None
    host_seconds: float | None
    """Where they are not the same: on a GPU."""
    launches: int
    read_bytes: int | None
    write_bytes: int | None
    flops: int | None
    bytes_per_second: float | None
    flops_per_second: float | None
    roofline: float | None
    """Share of what the machine's ceilings allow."""


class OperationItem(Item):
    """An operation of the eager call."""

    id: str
    operation: str
    arguments: str
    phase: str
    module: str
    lines: list[PlaceItem]
    region: str
    work: WorkItem


class StepItem(Item):
    """A kernel or call of the compiled call."""

    id: str
    kind: Literal["kernel", "aten", "eager"]
    name: str
    kernel: str
    graph: str
    phase: str
    lines: list[PlaceItem]
    region: str
    work: WorkItem


class RegionItem(Item):
    """A row of the table: a region, or the same region of several layers."""

    ids: list[str]
    label: str
    phase: str
    module: str
    where: str
    """Of a region without lines: the module, or what else is known."""
    lines: list[PlaceItem]
    eager: WorkItem
    compiled: WorkItem
    difference: float
    """compiled - eager, in seconds."""
    noise: float
    standing: Standing
    rank: int | None
    """1 for the largest difference; what cannot be told apart shares one. null in the noise."""
    same_calls: bool
    """Both sides run the same library calls: noise is 5% of their time at least (all of it on
    a contended machine), and no difference that is less than a hundredth of the call counts."""
    start: float | None
    """Where it begins on the way from eager to compiled; null in the noise."""
    steps: list[str]
    operations: list[str]


class CauseItem(Item):
    """What was lost (above 0) or won, and why."""

    kind: str
    title: str
    seconds: float
    noise: float
    estimated: bool
    once: bool
    file: str
    line: int | None
    regions: list[str]
    notes: list[str]
    fixes: list[str]
    options: list[list[str]]
    """Command lines that tcw can try, an array of options each."""


class LineItem(Item):
    """The time beside a source line."""

    file: str
    line: int
    eager: float
    compiled: float
    own: float


class AccountLineItem(Item):
    name: str
    seconds: float
    what: str


class AccountItem(Item):
    side: Literal["eager", "compiled"]
    phase: str
    measured: TimedItem
    lines: list[AccountLineItem]
    remainder: float
    remainder_noise: float


class BandwidthItem(Item):
    bytes: int
    per_second: float


class CeilingsItem(Item):
    device: str
    threads: int
    bandwidth: list[BandwidthItem]
    rates: dict[str, float]
    note: str


class OutputItem(Item):
    node: str
    error: float | None
    eager_error: float | None
    bound: float | None
    note: str


class PrecisionItem(Item):
    kernel: str
    graph: str
    within: bool | None
    outputs: list[OutputItem]
    reason: str


class NestItem(Item):
    """One loop nest of a kernel that has several."""

    kernel: str
    graph: str
    line: int
    time: TimedItem


class MemoryItem(Item):
    eager_peak_bytes: int | None
    compiled_peak_bytes: int | None
    eager_saved_bytes: int | None
    compiled_saved_bytes: int | None


class RestItem(Item):
    """What the plain call takes beyond its regions."""

    eager: float
    compiled: float
    noise: float


class ProfileItem(Item):
    """One profiled call of one engine."""

    engine: str
    call: int
    what: str
    device: str
    clock: Literal["host", "device"]
    rounds: int
    compiled_again: int
    unmeasured: str
    unmeasured_sides: list[Literal["eager", "compiled", "guards"]]
    eager: TimedItem
    compiled: TimedItem
    speedup: float
    noise: float
    headline: str
    regions: list[RegionItem]
    rest: RestItem
    causes: list[CauseItem]
    lines: list[LineItem]
    steps: list[StepItem]
    operations: list[OperationItem]
    accounts: list[AccountItem]
    ceilings: CeilingsItem | None
    memory: MemoryItem
    precision: list[PrecisionItem]
    nests: list[NestItem]


class ModeItem(Item):
    """One way to run the model."""

    name: str
    engine: str
    mode: str
    eager: TimedItem | None
    time: TimedItem | None
    speedup: float | None
    noise: float | None
    compile_seconds: float | None
    peak_bytes: int | None
    pays_after: int | None
    note: str
    reason: str


class TrialItem(Item):
    """Something that was suggested, and tried."""

    id: str
    words: str
    options: list[str]
    diff: str
    before: TimedItem | None
    after: TimedItem | None
    difference: float | None
    noise: float | None
    kept: bool
    command: str
    equal: bool | None
    reason: str
