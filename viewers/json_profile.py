"""A profile as a part of the object of `--json`."""

from __future__ import annotations

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
from viewers.json_profile_items import (
    AccountItem,
    AccountLineItem,
    BandwidthItem,
    CauseItem,
    CeilingsItem,
    LineItem,
    MemoryItem,
    ModeItem,
    NestItem,
    OperationItem,
    OutputItem,
    PlaceItem,
    PrecisionItem,
    ProfileItem,
    RegionItem,
    RestItem,
    StepItem,
    TimedItem,
    TrialItem,
    WorkItem,
)
from viewers.recording import Recording
from viewers.summary.profile import (
    Cause,
    Profile,
    RegionRow,
    Work,
    profiles_of,
    work_of,
)
from viewers.summary.profile.where import where


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
        unmeasured_sides=list(head.unmeasured_sides),
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
        where=where(row),
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
