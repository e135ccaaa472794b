"""Facts compared with those that were accepted: what is worse, better, or only different.

A *number* (`kernels`) has a tolerance. A *listed* fact (one graph break, one library call) is
there or not, and counts. Where listed facts explain a number, only they are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tcw.viewers.summary.facts import Fact, FactUnit, Value
from tcw.viewers.words import bytes_text, error_text, seconds_text

FactStanding = Literal["worse", "different", "better"]
Key = tuple[str, str]


@dataclass(frozen=True)
class Tolerance:
    """By how much a number may change. `Tolerance()` is exact."""

    absolute: float = 0.0
    relative: float = 0.0
    """As a share of what was accepted."""
    advice: bool = False
    """A change is reported and never fails the check."""
    ignored: bool = False

    def covers(self, before: float, after: float) -> bool:
        return abs(after - before) <= max(self.absolute, self.relative * abs(before))

    @property
    def words(self) -> str:
        if self.relative:
            return f"{self.relative:.0%} allowed"
        return f"{self.absolute:g} allowed" if self.absolute else ""


class BadTolerance(ValueError):
    """An invalid tolerance; the message says what is expected."""


def read_tolerance(value: object) -> Tolerance:
    """`exact`, `advice`, `ignore`, `"5%"`, or a number. Raises `BadTolerance`."""
    named = {
        "exact": Tolerance(),
        "advice": Tolerance(advice=True),
        "ignore": Tolerance(ignored=True),
    }
    if isinstance(value, str):
        if value in named:
            return named[value]
        number, percent, rest = value.partition("%")
        if percent and not rest:
            try:
                return Tolerance(relative=abs(float(number)) / 100)
            except ValueError:
                pass
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return Tolerance(absolute=float(value))
    raise BadTolerance(f'{value!r}: expected a number, "5%", "exact", "advice" or "ignore"')


ERROR = Tolerance(absolute=1e-6, relative=3.0)
"""For the largest error: rounding alone can double it, and inputs differ from run to run."""

DEFAULTS: Mapping[str, Tolerance] = {
    "guards": Tolerance(advice=True),
    "scheduler nodes": Tolerance(advice=True),
    "bytes moved": Tolerance(relative=0.01),
    "saved for backward": Tolerance(relative=0.01),
    "memory peak": Tolerance(relative=0.01),
    "max error": ERROR,
    "compile CPU": Tolerance(relative=0.5, advice=True),
    "compile instructions": Tolerance(relative=0.05, advice=True),
}
"""By the name of a number or of a group; everything else is exact."""

OF_A_MACHINE = ("seconds", "instructions")
"""Units of facts that depend on the machine: they count only where a project accepts them."""

EXPLAINED = {"graph breaks": "break", "recompiles": "recompile"}
"""Number -> the group whose facts explain a change of it."""

_NEUTRAL_NUMBERS = frozenset({"guards", "scheduler nodes"})


class FactGroup(NamedTuple):
    """Facts that are listed one by one."""

    words: str
    """What one of them is called."""
    worse: Literal["", "more", "less"] = ""
    counts: str = ""
    """What its numbers count: `library calls of`."""


GROUPS = {
    "failure": FactGroup("failure", "more"),
    "break": FactGroup("graph break", "more"),
    "eager": FactGroup("eager fallback", "more"),
    "recompile": FactGroup("recompile", "more"),
    "size": FactGroup("dynamic size", "less"),
    "condition": FactGroup("condition on sizes", "more"),
    "fused": FactGroup("fusion", "less"),
    "dtype": FactGroup("dtype of a kernel", counts="kernels computing in"),
    "library": FactGroup("library call", counts="library calls of"),
    "setting": FactGroup("torch setting"),
    "": FactGroup("number"),
    "cudagraph-skip": FactGroup("skipped CUDA graph", "more"),
    "cudagraph-again": FactGroup("CUDA graph recorded again", "more"),
    "bypass": FactGroup("cache bypass", "more"),
}
"""The groups of facts, the most important first; "" has the numbers of a whole recording. Fewer
dtypes are better, more are only different: bfloat16 may be what was wanted."""
LISTED = tuple(group for group in GROUPS if group)


@dataclass(frozen=True)
class FactChange:
    """One fact that is not what was accepted."""

    group: str
    name: str
    before: Value | None
    """None if it was not there."""
    after: Value | None
    """None if it is gone."""
    standing: FactStanding
    unit: FactUnit = "count"
    tolerance: Tolerance = Tolerance()
    file: str = ""
    line: int = 0

    @property
    def fails(self) -> bool:
        """Whether the check fails because of it."""
        return self.standing != "better" and not self.tolerance.advice

    @property
    def words(self) -> str:
        """`kernels 4 → 5`, `a new graph break: GB0059 in forward: print(x)`."""
        if not self.group:
            allowed = f" ({self.tolerance.words})" if self.tolerance.words else ""
            before, after = (value_text(one, self.unit) for one in (self.before, self.after))
            return f"{self.name} {before} → {after}{allowed}"
        if self.group == "fused":
            return f"{'no longer' if self.after == 'no' else 'now'} in one kernel: {self.name}"
        if self.group == "size":
            how = "dynamic now" if self.after else "was dynamic and is now specialised"
            return f"{how}: {self.name}"
        if self.group == "setting":
            return f"{self.name} {self.before or 'default'} → {self.after or 'default'}"
        what, _, counts = GROUPS[self.group]
        if counts:
            return f"{counts} {self.name}: {self.before or 'none'} → {self.after or 'none'}"
        if self.before is None:
            many = f" ×{self.after}" if isinstance(self.after, int) and self.after > 1 else ""
            return f"a new {what}: {self.name}{many}"
        if self.after is None:
            return f"a {what} gone: {self.name}"
        return f"{what} {self.name} ×{self.before} → ×{self.after}"


def value_text(value: Value | None, unit: FactUnit, unknown: str = "none") -> str:
    """A fact's value with its unit: `1,634`, `1.0 MB`."""
    if value is None:
        return unknown
    if isinstance(value, str):
        return value
    if unit == "bytes":
        return bytes_text(int(value))
    if unit == "seconds":
        return seconds_text(value)
    if unit == "instructions":
        return f"{value / 1e9:.2f} G"
    return error_text(value) if unit == "error" else f"{value:,}"


def budgeted(fact: Fact, tolerances: Mapping[str, Tolerance]) -> bool:
    """Whether a budget has this fact: not if it is ignored, and what belongs to a machine only if a
    tolerance names it."""
    tolerance = tolerances.get(fact.group or fact.name)
    return fact.unit not in OF_A_MACHINE if tolerance is None else not tolerance.ignored


def compare(
    accepted: Mapping[Key, Value],
    found: Iterable[Fact],
    tolerances: Mapping[str, Tolerance] | None = None,
) -> tuple[FactChange, ...]:
    """What is not as accepted, the worst first. `tolerances`: by the name of a number or a group,
    instead of `DEFAULTS`."""
    rules = {**DEFAULTS, **(tolerances or {})}
    now = {one.key: one for one in found}
    changes = []
    for key in dict.fromkeys([*accepted, *now]):
        group, name = key
        tolerance = rules.get(group or name, Tolerance())
        fact, before = now.get(key), accepted.get(key)
        after = fact.value if fact is not None else None
        if fact is not None and fact.unit in OF_A_MACHINE and before is None:
            continue
        if before == after or tolerance.ignored or _both_covered(tolerance, before, after):
            continue
        if not group and (before is None or after is None):
            tolerance = replace(tolerance, advice=True)  # only one side could measure it
        changes.append(
            FactChange(
                group,
                name,
                before,
                after,
                standing_of(group, name, before, after),
                fact.unit if fact is not None else "count",
                tolerance,
                fact.file if fact is not None else "",
                fact.line if fact is not None else 0,
            )
        )
    groups = {change.group for change in changes}
    kept = [
        change for change in changes if EXPLAINED.get(change.name) not in groups or change.group
    ]
    return tuple(sorted(kept, key=_rank))


def _both_covered(tolerance: Tolerance, before: Value | None, after: Value | None) -> bool:
    if isinstance(before, str) or isinstance(after, str) or before is None or after is None:
        return False
    return tolerance.covers(before, after)


def standing_of(group: str, name: str, before: Value | None, after: Value | None) -> FactStanding:
    """Whether a change of one fact is for the worse."""
    more = _number(after) > _number(before)
    worse = GROUPS[group].worse
    if worse:
        lost = after is None or after == "no"
        return "worse" if (more if worse == "more" else lost) else "better"
    if group == "dtype" and not more:
        return "better"
    if group or name in _NEUTRAL_NUMBERS or before is None or after is None:
        return "different"
    return "worse" if more else "better"


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _rank(change: FactChange) -> tuple[bool, int, int]:
    standings = ("worse", "different", "better")
    return not change.fails, standings.index(change.standing), list(GROUPS).index(change.group)
