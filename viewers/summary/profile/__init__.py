"""What a profile says: rows, causes, accounts, computed once for text, JSON and the workbench.

Pure functions of a `Recording`. `profile_of` returns everything; `Profile.index` finds the records
by id, `costs_by_ref` the time of each source line, node and kernel line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import (
    Account,
    CallProfile,
    Ceilings,
    CompiledStep,
    KernelPrecision,
    Location,
    ModeRow,
    Region,
    Trial,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile.attribution import Cost, costs_by_ref
from tcw.viewers.summary.profile.causes import causes_of
from tcw.viewers.summary.profile.causes.cause import Cause, Suggestion
from tcw.viewers.summary.profile.index import Index, newest
from tcw.viewers.summary.profile.profile_verdict import ProfileVerdict, verdict_of
from tcw.viewers.summary.profile.rows import RegionRow, Sort, region_rows
from tcw.viewers.summary.profile.waterfall import Waterfall, waterfall_of


@dataclass(frozen=True)
class Profile:
    """One profiled call of one engine."""

    index: Index
    engine: str
    rows: tuple[RegionRow, ...]
    """All regions of the call, the largest difference first."""
    causes: tuple[Cause, ...]
    """What was lost, most seconds first; then what was won."""
    verdict: ProfileVerdict
    step: Index
    """The optimizer's step if it was measured separately, else empty."""
    step_rows: tuple[RegionRow, ...] = ()
    """Its regions."""

    @property
    def head(self) -> CallProfile:
        return self.index.head

    @property
    def accounts(self) -> tuple[Account, ...]:
        return self.index.accounts

    @property
    def ceilings(self) -> Ceilings | None:
        return self.index.ceilings

    @property
    def precision(self) -> tuple[KernelPrecision, ...]:
        return tuple(self.index.recording.all(KernelPrecision))

    @property
    def modes(self) -> tuple[ModeRow, ...]:
        return tuple(self.index.recording.all(ModeRow))

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(self.index.recording.all(Trial))

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """What tcw can try, without duplicates, best first."""
        found = {
            suggestion.id: suggestion for cause in self.causes for suggestion in cause.suggestions
        }
        return tuple(found.values())

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """Ref of a source line, a node, a kernel or a line of one -> its time."""
        return dict(costs_by_ref(self.index))

    @cached_property
    def kernel_seconds(self) -> dict[str, float]:
        """Kernel id -> what its launches in the call took together, where that was measured."""
        known = (
            (kernel, self.costs.get(refs.kernel(kernel))) for kernel in self.index.recording.kernels
        )
        return {one: cost.compiled for one, cost in known if cost is not None}

    @cached_property
    def line_costs(self) -> dict[tuple[str, int], Cost]:
        """(file, line) -> its time: the source lines of `costs`."""
        return {
            refs.split_source(ref): cost
            for ref, cost in self.costs.items()
            if refs.kind(ref) == "src"
        }

    def waterfall(self, sort: Sort = "difference") -> Waterfall:
        return waterfall_of(self.head, self.rows, sort)

    def row_of(self, region: str) -> RegionRow | None:
        """The row of a region, by the region's id."""
        return self._row_of.get(region)

    @cached_property
    def _row_of(self) -> dict[str, RegionRow]:
        rows = (*self.rows, *self.step_rows)
        return {region.id: row for row in rows for region in row.regions}

    def row_with(self, id: str) -> RegionRow | None:
        """The row of a step or an operation, by its id."""
        region = self.region_of(id)
        return self.row_of(region.id) if region is not None else None

    def lines_between(self, phase: str = "") -> tuple[tuple[str, int], ...]:
        """(file, line) of what runs outside all graphs, most time first."""
        seconds: dict[tuple[str, int], float] = {}
        for step in self.index.steps.values():
            if step.kind != "eager" or step.time is None or phase not in ("", step.phase):
                continue
            place = self._place_between(step)
            if place is not None:
                key = (place.file, place.line)
                seconds[key] = seconds.get(key, 0.0) + step.time.median
        return tuple(sorted(seconds, key=lambda key: -seconds[key]))

    def _place_between(self, step: CompiledStep) -> Location | None:
        """The user line of a step outside all graphs: its region's, where that has only one; else
        that of the operation of its name in the region."""
        region = self.index.region_of.get(step.id)
        if region is None:
            return None
        if len(region.locations) == 1:
            return region.locations[0]
        operations = self.index.operations_in(region)
        same = (operation.location for operation in operations if operation.operation == step.name)
        return next((place for place in same if place is not None), None)

    def region_of(self, id: str) -> Region | None:
        """The region of a step or an operation, by its id."""
        return self.index.region_of.get(id) or self.step.region_of.get(id)


def profile_of(recording: Recording) -> Profile | None:
    """The last profiled call in a recording of one engine; None if there is none."""
    index = newest(recording)
    if index is None:
        return None
    rows = region_rows(index)
    causes = causes_of(index, rows)
    settings = recording.settings
    step = Index(recording, index.head, optimizer=True)
    return Profile(
        index=index,
        engine=settings.engine if settings else "",
        rows=rows,
        causes=causes,
        verdict=verdict_of(index.head, causes),
        step=step,
        step_rows=region_rows(step),
    )


def profiles_of(recording: Recording) -> tuple[Profile, ...]:
    """One per profiled engine."""
    parts = recording.engines.values() if recording.engines else (recording,)
    generator = (profile_of(part) for part in parts)
    return tuple(profile for profile in generator if profile is not None)
