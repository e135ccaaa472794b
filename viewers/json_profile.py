"""A profile as a part of the object of `--json` (docs/json.md): seconds, bytes, shares from 0 to 1.

What was not measured is null.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from compiler.trace.records import (
    Account,
    Ceilings,
    CompiledStep,
    EagerOperation,
    KernelNests,
    KernelPrecision,
    Location,
    ModeRow,
    Timed,
    Trial,
)
from viewers.recording import Recording
from viewers.summary.profile import (
    Cause,
    Profile,
    RegionRow,
    Standing,
    Work,
    profiles_of,
    work_of,
)


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
    """Both sides run the same library calls: noise is 5% of their time at least."""
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


def profile_items(recording: Recording) -> list[ProfileItem]:
    return [_profile(one) for one in profiles_of(recording)]


def mode_items(recording: Recording) -> list[ModeItem]:
    return [_mode(one) for one in recording.all(ModeRow)]


def trial_items(recording: Recording) -> list[TrialItem]:
    return [_trial(one) for one in recording.all(Trial)]


def _profile(one: Profile) -> ProfileItem:
    head, fall = one.head, one.waterfall()
    indices = (one.index, one.step)
    starts = dict(zip((row.key for row in fall.rows), fall.starts(), strict=True))
    return ProfileItem(
        engine=one.engine,
        call=head.call,
        what=head.what,
        device=head.device,
        clock=head.clock,
        rounds=head.rounds,
        compiled_again=head.compiled_again,
        unmeasured=head.unmeasured,
        eager=_measured(head.eager),
        compiled=_measured(head.compiled),
        speedup=head.speedup,
        noise=head.noise,
        headline=one.verdict.headline,
        regions=[_region(row, starts.get(row.key)) for row in (*one.rows, *one.step_rows)],
        rest=RestItem(eager=fall.rest.eager, compiled=fall.rest.compiled, noise=fall.rest.noise),
        causes=[_cause(cause) for cause in one.causes],
        lines=_lines(one),
        steps=[_step(one, step) for of in indices for step in of.steps.values()],
        operations=[_operation(one, made) for of in indices for made in of.operations.values()],
        accounts=[_account(account) for account in one.accounts],
        ceilings=_ceilings(one.ceilings) if one.ceilings else None,
        memory=MemoryItem(
            eager_peak_bytes=head.eager_peak_bytes,
            compiled_peak_bytes=head.compiled_peak_bytes,
            eager_saved_bytes=head.eager_saved_bytes,
            compiled_saved_bytes=head.compiled_saved_bytes,
        ),
        precision=[_precision(kernel) for kernel in one.precision],
        nests=[
            NestItem(kernel=of.kernel, graph=of.graph, line=nest.line, time=_measured(nest.time))
            for of in one.index.recording.all(KernelNests)
            if of.call == one.head.call
            for nest in of.nests
        ],
    )


def _measured(time: Timed) -> TimedItem:
    return TimedItem(seconds=time.median, spread=time.spread)


def _timed(time: Timed | None) -> TimedItem | None:
    return _measured(time) if time else None


def _place(location: Location) -> PlaceItem:
    return PlaceItem(file=location.file, line=location.line)


def _work(work: Work) -> WorkItem:
    return WorkItem(
        time=_timed(work.time),
        host_seconds=work.host,
        launches=work.launches,
        read_bytes=work.read_bytes,
        write_bytes=work.write_bytes,
        flops=work.flops,
        bytes_per_second=work.bandwidth,
        flops_per_second=work.rate,
        roofline=work.share,
    )


def _region(row: RegionRow, start: float | None) -> RegionItem:
    return RegionItem(
        ids=[region.id for region in row.regions],
        label=row.label,
        phase=row.phase,
        module=row.module,
        lines=[_place(one) for one in row.locations],
        eager=_work(row.eager_work),
        compiled=_work(row.compiled_work),
        difference=row.difference,
        noise=row.noise,
        standing=row.standing,
        rank=row.rank or None,
        same_calls=row.same_calls,
        start=start,
        steps=[step.id for step in row.steps],
        operations=[one.id for one in row.operations],
    )


def _cause(cause: Cause) -> CauseItem:
    return CauseItem(
        kind=cause.kind,
        title=cause.title,
        seconds=cause.seconds,
        noise=cause.noise,
        estimated=cause.estimated,
        once=cause.once,
        file=cause.place.file if cause.place else "",
        line=cause.place.line if cause.place else None,
        regions=list(cause.regions),
        notes=list(cause.notes),
        fixes=[fix.code or fix.text for fix in cause.fixes],
        options=[list(one.options) for one in cause.suggestions if one.options],
    )


def _lines(one: Profile) -> list[LineItem]:
    found = []
    for (file, line), cost in sorted(one.line_costs.items()):
        found.append(
            LineItem(file=file, line=line, eager=cost.eager, compiled=cost.compiled, own=cost.own)
        )
    return found


def _step(one: Profile, step: CompiledStep) -> StepItem:
    region = one.region_of(step.id)
    return StepItem(
        id=step.id,
        kind=step.kind,
        name=step.name,
        kernel=step.kernel,
        graph=step.graph,
        phase=step.phase,
        lines=[_place(place) for place in one.index.locations_of(step)],
        region=region.id if region else "",
        work=_work(work_of(one.index, [step])),
    )


def _operation(one: Profile, made: EagerOperation) -> OperationItem:
    region = one.region_of(made.id)
    return OperationItem(
        id=made.id,
        operation=made.operation,
        arguments=made.arguments,
        phase=made.phase,
        module=made.module,
        lines=[_place(made.location)] if made.location else [],
        region=region.id if region else "",
        work=_work(work_of(one.index, [made])),
    )


def _account(account: Account) -> AccountItem:
    return AccountItem(
        side=account.side,
        phase=account.phase,
        measured=_measured(account.measured),
        lines=[
            AccountLineItem(name=line.name, seconds=line.time.median, what=line.what)
            for line in account.lines
        ],
        remainder=account.remainder,
        remainder_noise=account.remainder_noise,
    )


def _ceilings(ceilings: Ceilings) -> CeilingsItem:
    return CeilingsItem(
        device=ceilings.device,
        threads=ceilings.threads,
        bandwidth=[
            BandwidthItem(bytes=one.bytes, per_second=one.per_second) for one in ceilings.bandwidth
        ],
        rates=dict(ceilings.rates),
        note=ceilings.note,
    )


def _precision(one: KernelPrecision) -> PrecisionItem:
    return PrecisionItem(
        kernel=one.kernel,
        graph=one.graph,
        within=one.within,
        outputs=[
            OutputItem(
                node=out.node,
                error=out.error,
                eager_error=out.eager_error,
                bound=out.bound,
                note=out.note,
            )
            for out in one.outputs
        ],
        reason=one.reason,
    )


def _mode(row: ModeRow) -> ModeItem:
    known = row.time is not None
    return ModeItem(
        name=row.name,
        engine=row.engine,
        mode=row.mode,
        eager=_timed(row.eager),
        time=_timed(row.time),
        speedup=row.speedup if known else None,
        noise=row.noise if known else None,
        compile_seconds=row.compile_seconds if known else None,
        peak_bytes=row.peak_bytes,
        pays_after=row.pays_after,
        note=row.note,
        reason=row.reason,
    )


def _trial(one: Trial) -> TrialItem:
    known = one.before is not None and one.after is not None
    return TrialItem(
        id=one.id,
        words=one.words,
        options=list(one.options),
        diff=one.diff,
        before=_timed(one.before),
        after=_timed(one.after),
        difference=one.difference if known else None,
        noise=one.noise if known else None,
        kept=one.kept,
        command=one.command,
        equal=one.equal,
        reason=one.reason,
    )
