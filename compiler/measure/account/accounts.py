"""The accounts of a profiled call: separately measured lines, and the remainder.

A line is summed round by round before its median is taken. The medians of single steps would add up
to less than the median of a call, because each step is rarely disturbed and a call often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import median

from tcw.compiler.measure.account.readings import Measured, SideRounds
from tcw.compiler.measure.probes.call_rounds import SHORT
from tcw.compiler.measure.probes.laps import Lap, Side
from tcw.compiler.measure.regions.regions import PlacedStep
from tcw.compiler.measure.rounds.noise import Rounds, noise_of_medians, timed
from tcw.compiler.trace.matching import BACKWARD
from tcw.compiler.trace.plurals import plural
from tcw.compiler.trace.records.profile import Account, AccountLine, CallPhase, EagerOperation

_KINDS = (("kernels", "kernel", "kernel"), ("aten", "aten", "call"), ("eager", "eager", "call"))
"""(name of the line, kind of the steps, what one is called)."""


def summed(parts: Iterable[Rounds], rounds: int) -> list[float]:
    """The round-by-round sum of the parts; zeros if there are none."""
    found = [0.0] * rounds
    for part in parts:
        for number, seconds in enumerate(part):
            found[number] += seconds
    return found


def less(whole: Rounds, *parts: Rounds) -> list[float]:
    """The whole minus the parts, round by round, clamped at 0."""
    return [max(0.0, one - sum(part[number] for part in parts)) for number, one in enumerate(whole)]


def line(name: str, rounds: Rounds, what: str = "") -> AccountLine:
    """A line of an account."""
    return AccountLine(name=name, time=timed(rounds), what=what)


def account(
    side: Side,
    call: int,
    phase: CallPhase,
    measured: Rounds,
    lines: Sequence[AccountLine],
    noise: float = 0.0,
) -> Account:
    """The account of one side, without lines that are always 0. `noise`: of the remainder, in
    seconds."""
    kept = tuple(
        account_line
        for account_line in lines
        if account_line.time.median or account_line.time.spread
    )
    whole = timed(measured)
    return Account(
        side=side,
        call=call,
        phase=phase,
        measured=whole,
        lines=kept,
        remainder=whole.median - sum(account_line.time.median for account_line in kept),
        remainder_noise=noise,
    )


def eager_account(
    measured: Measured, side: SideRounds, operations: dict[int, EagerOperation], phase: CallPhase
) -> Account:
    """The operations, and the time around them."""
    wanted = {
        key: operation for key, operation in operations.items() if phase in ("", operation.phase)
    }
    parts = [side.seconds[key] for key in wanted if key in side.seconds]
    running = summed(parts, side.rounds)
    launches = sum(operation.launches > 0 for operation in wanted.values())
    what = f"{launches} operations, {len(wanted) - launches} views"
    lines = [line("operations", running, what)]
    if side.host:
        lines.append(_left(side, phase))
    elif not measured.phase:  # around a step's operations is its probe's own work
        own = [lap.took * _share(lap, phase) for lap in side.laps["probed"]]
        around = less(side.probed(phase), running, own)
        lines.append(line("dispatch", around, "Python, autograd"))
    plain = side.plain(phase)
    # once for these rounds, and once for those from which the profiler's cost was derived
    noise = sqrt(2) * remainder_noise(side, phase)
    return account("eager", measured.call, phase, plain, lines, noise)


def compiled_account(
    measured: Measured, side: SideRounds, steps: dict[int, PlacedStep], phase: CallPhase
) -> Account:
    """The steps by kind, and on a CPU the host's work around them. A GPU works in parallel with the
    host: there, the time in which it was idle."""
    wanted = {key: p.step for key, p in steps.items() if phase in ("", p.step.phase)}
    sums: dict[str, list[float]] = {}
    lines: list[AccountLine] = []
    for name, kind, noun in _KINDS:
        keys = [key for key, step in wanted.items() if step.kind == kind]
        rounds = len(side.seconds[keys[0]]) if keys else side.rounds
        sums[name] = summed((side.seconds[key] for key in keys), rounds)
        lines.append(line(name, sums[name], plural(len(keys), noun)))
    if side.host:
        lines.append(_left(side, phase))
    else:
        lines += _around(measured, side, phase, sums)
    return account(
        "compiled",
        measured.call,
        phase,
        side.plain(phase),
        lines,
        remainder_noise(side, phase),
    )


def _around(
    measured: Measured, side: SideRounds, phase: CallPhase, sums: dict[str, list[float]]
) -> list[AccountLine]:
    """The host's work around the kernels and ATen calls whose times are `sums`, on a CPU."""
    graphs = [
        base
        for probe, base in zip(measured.probes, measured.bases, strict=True)
        if base in side.seconds
        and (phase == measured.phase or (phase == "backward") == probe.graph.endswith(BACKWARD))
    ]
    whole = summed((side.seconds[base] for base in graphs), side.rounds)
    own = [lap.took * _share(lap, phase) for lap in side.laps["probed"]]
    guarding, checked = _guards(measured, side, phase)
    between = [median(sums["eager"])] * side.rounds
    guards = [guarding] * side.rounds
    return [
        line(
            "wrapper",
            less(whole, sums["kernels"], sums["aten"]),
            f"of {plural(len(graphs), 'graph')}",
        ),
        line("guards", guards, checked),
        line(
            "dispatch",
            less(side.probed(phase), whole, guards, between, own),
            f"{'guards, ' if measured.phase else ''}Dynamo's and AOTAutograd's wrappers",
        ),
    ]


def remainder_noise(side: SideRounds, phase: CallPhase) -> float:
    """The noise of the remainder: the lines come from the probed call, and are compared with the
    plain one. Calls of one round run in a row, and share their disturbances."""
    rounds = min(len({lap.turn for lap in side.laps[way]}) for way in ("plain", "probed"))
    plain, probed = side.plain(phase), side.probed_running(phase)
    return noise_of_medians(plain, probed, rounds)


def _share(lap: Lap, phase: CallPhase) -> float:
    """The share of a call's probe overhead that belongs to this phase, by the phases' times."""
    return lap.phases[phase] / lap.seconds if phase in lap.phases else 1.0


def _left(side: SideRounds, phase: CallPhase) -> AccountLine:
    """The part of the plain call in which the device did no work. Under a probe the host is so much
    slower that the device's waiting time means nothing."""
    measured = median(side.plain(phase))
    idle = [max(0.0, measured - busy) for busy in side.busy(phase)]
    return line("idle", idle, "what the device's work leaves of the call")


def _guards(measured: Measured, side: SideRounds, phase: CallPhase) -> tuple[float, str]:
    """Seconds of all guards that the call checks: those of each frame whose graph ran, once per
    run."""
    if phase not in ("", "forward"):
        return 0.0, ""
    short = median(lap.running() for lap in side.laps["plain"]) < SHORT
    costs = measured.guards.warm if short else measured.guards.found
    seconds, frames = 0.0, 0
    for probe, base in zip(measured.probes, measured.bases, strict=True):
        name = probe.graph.rpartition("/")[0]
        cost = costs.get(name)
        if cost is None or base not in side.seen or probe.graph.endswith(BACKWARD):
            continue
        seconds += cost.median * len(side.seen[base])
        frames += len(side.seen[base])
    return seconds, f"of {plural(frames, 'frame')}" if frames else ""
