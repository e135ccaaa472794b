"""Where the time of both sides' calls goes: one row per summand, with the remainder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcw.compiler.trace.records import Account, AccountLine
from tcw.viewers.file_names import FileNames

if TYPE_CHECKING:
    from tcw.viewers.summary.profile import Profile

ORDER = ("operations", "kernels", "aten", "eager", "wrapper", "guards", "dispatch", "idle")
"""Summands of a call, from the work to what surrounds it."""
UNEXPLAINED = 0.05
"""Unexplained share of a call above which its account does not add up."""
DOUBTFUL = 0.1
"""Share of a call above which a remainder in noise leaves its lines without shares."""
_LINES = 3
"""At most this many lines that run between graphs are named."""

BothSides = tuple[float | None, float | None]
"""Seconds of eager and of compiled; None where a side lacks it."""


@dataclass(frozen=True)
class AccountRow:
    """One summand of both calls."""

    name: str
    seconds: BothSides
    what: str
    """`14 loops`, `checks of 120 guards`; of both sides where they differ."""


@dataclass(frozen=True)
class AccountTable:
    """The account of both sides, of a call or of one phase of it."""

    phase: str
    eager: Account | None
    compiled: Account | None
    rows: tuple[AccountRow, ...]

    @property
    def sides(self) -> tuple[Account | None, Account | None]:
        return self.eager, self.compiled

    @property
    def remainder(self) -> BothSides:
        one, other = (side.remainder if side else None for side in self.sides)
        return one, other

    @property
    def measured(self) -> BothSides:
        one, other = (side.measured.median if side else None for side in self.sides)
        return one, other

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The sides whose lines come nowhere near the call, which noise may explain: the lines'
        rounds were so much slower, or faster, that no line has a meaningful share of the call."""
        return tuple(side.side for side in self.sides if side and is_doubtful(side))

    @property
    def in_noise(self) -> tuple[str, ...]:
        """The sides whose remainder means nothing because it may be noise."""
        return tuple(side.side for side in self.sides if side and _in_noise(side))


def account_tables(profile: Profile) -> tuple[AccountTable, ...]:
    """One per phase that was measured, in order."""
    return tuple(
        _table(profile, phase)
        for phase in dict.fromkeys(account.phase for account in profile.accounts)
    )


def open_remainder(account: Account) -> bool:
    """Whether more of the call is unexplained than its noise and a small share of it."""
    much = abs(account.remainder) > UNEXPLAINED * account.measured.median
    return much and not _in_noise(account)


def is_doubtful(account: Account) -> bool:
    return _in_noise(account) and abs(account.remainder) > DOUBTFUL * account.measured.median


def _in_noise(account: Account) -> bool:
    return abs(account.remainder) <= account.remainder_noise


def _table(profile: Profile, phase: str) -> AccountTable:
    sides = {account.side: account for account in profile.accounts if account.phase == phase}
    both = sides.get("eager"), sides.get("compiled")
    names = dict.fromkeys(line.name for account in both if account for line in account.lines)
    ordered = sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    rows = tuple(_row(profile, name, both) for name in ordered)
    return AccountTable(phase, *both, rows)


def _row(profile: Profile, name: str, both: tuple[Account | None, Account | None]) -> AccountRow:
    seconds: list[float | None] = []
    words: list[str] = []
    for account in both:
        line = (
            next((line for line in account.lines if line.name == name), None) if account else None
        )
        seconds.append(line.time.median if line else None)
        if account is not None and line is not None and line.what:
            words.append(_what(profile, line, account))
    return AccountRow(name, (seconds[0], seconds[1]), "; ".join(dict.fromkeys(words)))


def _what(profile: Profile, line: AccountLine, account: Account) -> str:
    """`4 kernels`; what runs between graphs with its lines, most time first: `18 calls at m.py:20,
    21`."""
    places = profile.lines_between(account.phase) if line.name == "eager" else ()
    if not places:
        return line.what
    file = places[0][0]
    name = FileNames.for_settings(profile.index.recording.settings).short(file)
    lines = [str(number) for where, number in places if where == file][:_LINES]
    more = " …" if len(places) > len(lines) else ""
    return f"{line.what} at {name}:{', '.join(lines)}{more}"
