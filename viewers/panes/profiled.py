"""What the panes of a profile have in common: the regions, figures and words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from msgspec import structs

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import CallProfile, Settings
from tcw.compiler.trace.refs import Ref
from tcw.viewers.command_line import command_line
from tcw.viewers.kit.spans import Role
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.profile_verdict import doubts
from tcw.viewers.summary.profile.rows import RegionRow, Sort
from tcw.viewers.summary.profile.waterfall import Sums, Waterfall, waterfall_of

PHASES = ("forward", "backward", "step")
KINDS = {"kernel": "generated", "aten": "library call", "eager": "between graphs"}
"""Kind of a step -> the words by which its region can be filtered."""
ORDERS: dict[str, Sort] = {"": "difference", "line": "line", "time": "time"}
"""`View.order` -> the order of the regions."""


@dataclass(frozen=True, eq=False)
class RegionGroup:
    """The regions of one phase of a training call; of another call, all of them."""

    phase: str
    waterfall: Waterfall
    whole: bool
    """Its sums are those of plain calls, not of its regions."""


@dataclass(frozen=True, eq=False)
class Table:
    """The regions shown, in order."""

    head: CallProfile
    groups: tuple[RegionGroup, ...]
    rest: Sums | None
    """Host and rest of the whole; None if only a part is shown."""
    total: Sums
    shown: int
    known: int
    """Regions of the call, those that the filter hides included."""
    causes: tuple[Cause, ...]

    @property
    def whole(self) -> bool:
        return self.rest is not None

    @cached_property
    def rows(self) -> tuple[RegionRow, ...]:
        """All rows, with every fold open."""
        falls = [group.waterfall for group in self.groups]
        return tuple(row for fall in falls for row in (*fall.rows, *fall.quiet))

    @cached_property
    def refs(self) -> dict[str, tuple[Ref, ...]]:
        """Key of a row -> its kernels; its lines if no kernel computes it."""
        found = {}
        for row in self.rows:
            kernels = tuple(ref for ref in row.refs if refs.kind(ref) == "k")
            found[row.key] = kernels or row.refs
        return found

    @cached_property
    def lines(self) -> dict[str, frozenset[Ref]]:
        """Key of a row -> its source lines."""
        return {
            row.key: frozenset(
                refs.source(location.file, location.line) for location in row.locations
            )
            for row in self.rows
        }

    @cached_property
    def _fixes(self) -> dict[str, str]:
        """Id of a region, or a source line -> what can be pasted for its costliest cause."""
        fixes: dict[str, str] = {}
        for cause in self.causes:
            code = next((fix.code for fix in cause.fixes if fix.code), "")
            for thing in about(cause) if code else ():
                fixes.setdefault(thing, code)
        return fixes

    def fix_of(self, row: RegionRow) -> str:
        """What can be pasted to fix a region; "" if nothing is known."""
        things = (*(region.id for region in row.regions), *row.refs)
        return next((self._fixes[thing] for thing in things if thing in self._fixes), "")

    @cached_property
    def differences(self) -> tuple[float, float]:
        """The largest loss and the largest win, of a row or of the rest: the scale of the bars."""
        found = [row.difference for row in self.rows if row.standing != "noise"]
        if self.rest is not None and not self.rest.in_noise:
            found.append(self.rest.difference)
        return max((0.0, *found)), max((0.0, *(-one for one in found)))


def about(cause: Cause) -> tuple[str, ...]:
    """The regions that a cause is about; if it is about none, its line."""
    return cause.regions or ((cause.place.ref,) if cause.place is not None else ())


def table_of(view: View) -> Table | None:
    """The part of the profile shown; None if no part of a call was timed."""
    derived, profile = view.derived, view.derived.profile
    if profile is None or profile.head.whole_only:
        return None
    order = view.order if view.order in ORDERS else ""
    key = (order, view.phase, view.region_filter)
    if key not in derived.tables:
        derived.tables[key] = _table(
            derived, profile, ORDERS[order], view.phase, view.region_filter
        )
    return derived.tables[key]


def phases_of(view: View) -> tuple[str, ...]:
    """The phases of a training call; none of another."""
    profile = view.derived.profile
    if profile is None:
        return ()
    known = {region.phase for region in (*profile.index.regions, *profile.step.regions)}
    return tuple(phase for phase in PHASES if phase in known)


def _table(derived: Derived, profile: Profile, sort: Sort, phase: str, words: str) -> Table:
    every = (*profile.rows, *profile.step_rows)
    known = [row for row in every if not phase or row.phase == phase]
    wanted = words.casefold().split()
    rows = [row for row in known if all(word in _said(derived, profile, row) for word in wanted)]
    # an optimizer's step that was measured apart is not part of the whole call
    called = rows if phase else [row for row in rows if row not in profile.step_rows]
    whole = waterfall_of(_head_of(profile, phase), called, sort)
    phases = [one for one in PHASES if any(row.phase == one for row in rows)]
    groups: tuple[RegionGroup, ...] = (RegionGroup(phase, whole, not words),)
    if not phase and phases:
        parts = [(one, [row for row in rows if row.phase == one]) for one in ("", *phases)]
        groups = tuple(
            RegionGroup(
                one, waterfall_of(_head_of(profile, one), part, sort), bool(one) and not words
            )
            for one, part in parts
            if part
        )
    shown = Sums.of(called)
    return Table(
        profile.head,
        groups,
        None if words else whole.rest,
        shown if words else whole.total,
        sum(row.count for row in rows),
        sum(row.count for row in known),
        profile.causes,
    )


def _head_of(profile: Profile, phase: str) -> CallProfile:
    """A profile of one phase alone, if the whole phase was measured."""
    sides = {
        account.side: account.measured
        for account in profile.accounts
        if account.phase == phase and phase
    }
    return structs.replace(profile.head, **sides)


def _said(derived: Derived, profile: Profile, row: RegionRow) -> str:
    """All words by which a region can be filtered."""
    said = derived.region_words.get(row.key)
    if said is None:
        places = (derived.names.place(location.file, location.line) for location in row.locations)
        steps = (f"{step.name} {KINDS[step.kind]} {step.kernel} {step.part}" for step in row.steps)
        operations = (f"{operation.operation} {operation.part}" for operation in row.operations)
        modules = (module for region in row.regions for module in region.modules)
        parts = (row.label, row.phase, row.standing, profile.engine)
        said = " ".join((*parts, *places, *steps, *operations, *modules)).casefold()
        derived.region_words[row.key] = said
    return said


def chosen(view: View) -> RegionRow | None:
    """The current region: the first if none is chosen."""
    table = table_of(view)
    if table is None:
        return None
    profile = view.derived.profile
    row = profile.row_of(view.region) if profile and view.region else None
    return row or next(iter(table.rows), None)


def of_selection(view: View) -> str:
    """Key of the region that the selection is part of; "" if it is part of none."""
    table = table_of(view)
    if table is None or not view.ref:
        return ""
    for key, things in table.refs.items():
        if view.ref in table.lines[key] or any(t == view.ref or t in view.lit for t in things):
            return key
    return ""


def first(view: View) -> str:
    """Key of the region to look at first: that of the first cause, else the first that differs. ""
    where what matters most is not a region."""
    table, profile = table_of(view), view.derived.profile
    if table is None or profile is None:
        return ""
    shown = {row.key for row in table.rows}
    for cause in profile.causes:
        if not cause.regions and not view.phase:
            return ""
        rows = (profile.row_of(region) for region in cause.regions)
        key = next((row.key for row in rows if row is not None and row.key in shown), "")
        if key:
            return key
    differing = (row for row in table.rows if row.standing != "noise")
    return next((row.key for row in differing), "")


def not_measured(view: View) -> tuple[str, str]:
    """What a pane shows without a profile, or without one of the call's parts: why, or the command
    that measures it."""
    settings, profile = view.recording.run_settings, view.derived.profile
    if profile is not None:
        why = doubts(profile.index) if profile.head.exceeded is not None else ()
        return profile.verdict.headline, why[-1] if why else profile.verdict.detail.text
    if settings is not None and settings.profile:
        return (
            "the profile is not measured yet" if view.live else "it ended before it was measured",
            "",
        )
    if view.driven:
        return "not measured", "V compiles it again, and takes a call apart"
    return "not measured", f"{command(view, '--trace', 'run.tcw')} measures it"


def command(view: View, *options: str) -> str:
    """The command that profiles the recorded model, with further options."""
    settings = view.recording.settings or Settings(file="FILE")
    return plain(command_line("profile", settings, options))


def role_of(difference: float, in_noise: bool) -> Role:
    return "dim" if in_noise else "bad" if difference > 0 else "good"
