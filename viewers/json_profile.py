"""A profile in the object of `--json` (docs/json.md): seconds, bytes, shares from 0 to 1.

What was not measured is null.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from tcw.compiler.trace.records import CompiledStep, EagerOperation, KernelNests, ModeRow, Trial
from tcw.viewers.json_text import JsonItem, placed
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import Profile, profiles_of
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.rows import RowStanding, where
from tcw.viewers.summary.profile.work import work_of


class TimedItem(JsonItem):
    median: float = field(name="seconds")
    """Median over the rounds."""
    spread: float
    """max(3 MAD, 1%) of it, in seconds."""


class PlaceItem(JsonItem):
    file: str
    line: int


class WorkItem(JsonItem):
    """One side of a region, a kernel, or an operation."""

    time: TimedItem | None
    host: float | None = field(name="host_seconds")
    """Where they are not the same: on a GPU."""
    launches: int
    read_bytes: int | None
    write_bytes: int | None
    flops: int | None
    bandwidth: float | None = field(name="bytes_per_second")
    rate: float | None = field(name="flops_per_second")
    share: float | None = field(name="roofline")
    """Share of what the machine's ceilings allow."""


class OperationItem(JsonItem):
    """An operation of the eager call."""

    id: str
    operation: str
    arguments: str
    phase: str
    module: str
    lines: list[PlaceItem]
    region: str
    work: WorkItem


class StepItem(JsonItem):
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


class RegionItem(JsonItem):
    """A row of the table: a region, or the same region of several layers."""

    ids: list[str]
    label: str
    phase: str
    module: str
    where: str
    """Of a region without lines: the module, or what else is known."""
    locations: list[PlaceItem] = field(name="lines")
    eager_work: WorkItem = field(name="eager")
    compiled_work: WorkItem = field(name="compiled")
    difference: float
    """compiled - eager, in seconds."""
    noise: float
    standing: RowStanding
    rank: int | None
    """1 for the largest difference; what cannot be told apart shares one. null in the noise."""
    same_calls: bool
    """Both sides run the same library calls: noise is 5% of their time at least, and no difference
    that is less than a hundredth of the call counts."""
    start: float | None
    """Where it begins on the way from eager to compiled; null in the noise."""
    steps: list[str]
    operations: list[str]


class CauseItem(JsonItem):
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


class LineItem(PlaceItem):
    """The time of a source line."""

    eager: float
    compiled: float
    own: float


class AccountLineItem(JsonItem):
    name: str
    seconds: float
    what: str


class AccountItem(JsonItem):
    side: Literal["eager", "compiled"]
    phase: str
    measured: TimedItem
    lines: list[AccountLineItem]
    remainder: float
    remainder_noise: float


class BandwidthItem(JsonItem):
    bytes: int
    per_second: float


class CeilingsItem(JsonItem):
    device: str
    threads: int
    bandwidth: list[BandwidthItem]
    rates: dict[str, float]
    note: str


class OutputItem(JsonItem):
    node: str
    error: float | None
    eager_error: float | None
    bound: float | None
    note: str


class PrecisionItem(JsonItem):
    kernel: str
    graph: str
    within: bool | None
    outputs: list[OutputItem]
    reason: str


class NestItem(JsonItem):
    """One loop nest of a kernel that has several."""

    kernel: str
    graph: str
    line: int
    time: TimedItem


class MemoryItem(JsonItem):
    eager_peak_bytes: int | None
    compiled_peak_bytes: int | None
    eager_saved_bytes: int | None
    compiled_saved_bytes: int | None


class RestItem(JsonItem):
    """What the plain call takes beyond its regions."""

    eager: float
    compiled: float
    noise: float


class ProfileItem(JsonItem):
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


class ModeItem(JsonItem):
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


class TrialItem(JsonItem):
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


def profile_items(recording: Recording) -> list[ProfileItem]:
    return [_profile(profile) for profile in profiles_of(recording)]


def mode_items(recording: Recording) -> list[ModeItem]:
    return [
        ModeItem.of(row)
        if row.time is not None
        else ModeItem.of(row, speedup=None, noise=None, compile_seconds=None)
        for row in recording.all(ModeRow)
    ]


def trial_items(recording: Recording) -> list[TrialItem]:
    return [
        TrialItem.of(trial)
        if trial.before is not None and trial.after is not None
        else TrialItem.of(trial, difference=None, noise=None)
        for trial in recording.all(Trial)
    ]


def _profile(profile: Profile) -> ProfileItem:
    fall = profile.waterfall()
    starts = dict(zip((row.key for row in fall.rows), fall.starts(), strict=True))
    indices = (profile.index, profile.step)
    return ProfileItem.of(
        profile.head,
        engine=profile.engine,
        headline=profile.verdict.headline,
        regions=[
            RegionItem.of(
                row,
                ids=[region.id for region in row.regions],
                where=where(row),
                rank=row.rank or None,
                start=starts.get(row.key),
                steps=[step.id for step in row.steps],
                operations=[made.id for made in row.operations],
            )
            for row in (*profile.rows, *profile.step_rows)
        ],
        rest=fall.rest,
        causes=[_cause(cause) for cause in profile.causes],
        lines=[
            LineItem.of(cost, file=file, line=line)
            for (file, line), cost in sorted(profile.line_costs.items())
        ],
        steps=[_step(profile, step) for of in indices for step in of.steps.values()],
        operations=[_operation(profile, made) for of in indices for made in of.operations.values()],
        accounts=profile.accounts,
        ceilings=profile.ceilings,
        memory=profile.head,
        precision=profile.precision,
        nests=[
            NestItem.of(nest, kernel=of.kernel, graph=of.graph)
            for of in profile.index.recording.all(KernelNests)
            if of.call == profile.head.call
            for nest in of.nests
        ],
    )


def _cause(cause: Cause) -> CauseItem:
    return CauseItem.of(
        cause,
        **placed(cause.place),
        fixes=[fix.code or fix.text for fix in cause.fixes],
        options=[suggestion.options for suggestion in cause.suggestions if suggestion.options],
    )


def _step(profile: Profile, step: CompiledStep) -> StepItem:
    lines = profile.index.locations_of(step)
    return StepItem.of(
        step, lines=lines, region=_region(profile, step.id), work=work_of(profile.index, [step])
    )


def _operation(profile: Profile, made: EagerOperation) -> OperationItem:
    lines = [made.location] if made.location else []
    return OperationItem.of(
        made, lines=lines, region=_region(profile, made.id), work=work_of(profile.index, [made])
    )


def _region(profile: Profile, id: str) -> str:
    region = profile.region_of(id)
    return region.id if region else ""
