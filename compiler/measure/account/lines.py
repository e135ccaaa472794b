"""Where the time of a call goes: separately measured lines, and the remainder.

A line is summed round by round before its median is taken. The medians of single steps would add up
to less than the median of a call, because each step is rarely disturbed and a call often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcw.compiler.measure.rounds.laps import Side
from tcw.compiler.measure.rounds.noise import Rounds, timed
from tcw.compiler.trace.records.profile import Account, AccountLine, CallPhase


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
    kept = tuple(one for one in lines if one.time.median or one.time.spread)
    whole = timed(measured)
    return Account(
        side=side,
        call=call,
        phase=phase,
        measured=whole,
        lines=kept,
        remainder=whole.median - sum(one.time.median for one in kept),
        remainder_noise=noise,
    )
