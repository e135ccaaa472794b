"""Regions as rows of a table: the time of a line of the model in eager, and compiled.

Equal regions of repeated layers share a row that has their sums. Its noise is the sum of theirs, so
the sum shows no difference that none of them shows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import Literal

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import (
    CallProfile,
    CompiledStep,
    EagerOperation,
    Location,
    Region,
    Timed,
)
from tcw.viewers.collected import grouped
from tcw.viewers.summary.place import Place, place_of
from tcw.viewers.summary.profile.causes.step_words import bare, is_product, split_arguments
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.work import SideWork, sum_of, work_of
from tcw.viewers.words import dtype_text

SMALL = 0.01
"""Share of a call below which a difference is small."""


@dataclass(frozen=True)
class TimeDifference:
    """compiled - eager; both in seconds."""

    seconds: float
    noise: float


@dataclass(frozen=True)
class Ranked:
    """The position of a difference among others."""

    position: int
    """From 1."""
    rank: int
    """The position of the first of those tied with it."""


def small_below(head: CallProfile) -> float:
    """Seconds below which a difference counts as small in this call."""
    return SMALL * max(head.eager.median, head.compiled.median)


def standings(found: Sequence[TimeDifference]) -> list[Ranked]:
    """One for each, in the order given; equal ones keep their order. A difference is tied with the
    first of the rank before it unless that is larger by more than the noise of both."""
    made: dict[int, Ranked] = {}
    rank, first = 0, TimeDifference(0.0, 0.0)
    order = sorted(range(len(found)), key=lambda at: -abs(found[at].seconds))
    for position, at in enumerate(order, start=1):
        difference = found[at]
        apart = abs(first.seconds) - abs(difference.seconds) > hypot(first.noise, difference.noise)
        if not rank or apart:
            rank, first = position, difference
        made[at] = Ranked(position, rank)
    return [made[at] for at in range(len(found))]


RowStanding = Literal["lost", "won", "noise"]
Sort = Literal["difference", "time", "line"]
_CLEARLY = 1.25
SAME_CALLS_LEAST = "5%"
"""Differences of the same calls below it are noise (`compiler/measure/regions/same_work.py`)."""
SORTS: tuple[Sort, ...] = ("difference", "time", "line")


@dataclass(frozen=True)
class RegionRow:
    """One region, or the same region of several layers."""

    regions: tuple[Region, ...]
    label: str
    phase: str
    locations: tuple[Location, ...]
    place: Place | None
    """Its first user line."""
    module: str
    """`layers.0.attention`, or `layers.*.attention` of several; "" if none is known."""
    eager: Timed | None
    """None: this exists only under capture."""
    compiled: Timed | None
    """None: compiling removed it."""
    difference: float
    """compiled - eager, in seconds; below 0 compiling won."""
    noise: float
    steps: tuple[CompiledStep, ...]
    operations: tuple[EagerOperation, ...]
    eager_work: SideWork
    compiled_work: SideWork
    known: bool = True
    """False if its counterpart is unknown: then it counts as neither lost nor won."""
    order: int = 0
    """Its place in the eager call, from 0."""
    position: int = 0
    """Its position in the order of differences, from 1; 0 in the noise."""
    rank: int = 0
    """1 for the largest difference; ties share a rank. 0 in the noise."""
    tied: bool = False
    """Whether others have the same rank."""
    small: bool = False
    """Less than a hundredth of the call."""
    disturbed: bool = False
    """On one side it took clearly longer than the whole call, which undisturbed rounds measure: its
    own rounds were disturbed, so its difference says nothing."""

    @property
    def standing(self) -> RowStanding:
        """What only one side runs is certainly lost or won, even if its time is uncertain. Small
        differences of what runs the same calls come from their surroundings."""
        same = self.same_calls and self.small
        both = self.eager is not None and self.compiled is not None
        within = both and abs(self.difference) <= self.noise
        if not self.known or same or within or self.disturbed:
            return "noise"
        return "lost" if self.difference > 0 else "won"

    @property
    def same_calls(self) -> bool:
        """Both sides run the same library calls: see `tcw.compiler.measure.regions.same_work`."""
        return all(region.same == "calls" for region in self.regions)

    @property
    def count(self) -> int:
        return len(self.regions)

    @property
    def key(self) -> str:
        """Identifies the row within a trace: the id of its first region."""
        return self.regions[0].id

    @property
    def refs(self) -> tuple[refs.Ref, ...]:
        """Its user lines and kernels."""
        lines = (refs.source(location.file, location.line) for location in self.locations)
        kernels = (refs.kernel(step.kernel) for step in self.steps if step.kernel)
        return tuple(dict.fromkeys((*lines, *kernels)))


def region_rows(index: Index) -> tuple[RegionRow, ...]:
    """All rows, the largest difference first."""
    alike = grouped(
        (_same(region, region_label(index, region)), region) for region in index.regions
    )
    limit = small_below(index.head)
    rows = []
    for order, regions in enumerate(alike.values()):
        row = _row(index, regions)
        small = abs(row.difference) < limit
        rows.append(replace(row, order=order, small=small, disturbed=_disturbed(index, row)))
    return ordered(_ranked(rows), "difference")


def _disturbed(index: Index, row: RegionRow) -> bool:
    sides = ((row.eager, index.head.eager), (row.compiled, index.head.compiled))
    return row.phase != "step" and any(
        part is not None and part.median > _CLEARLY * (whole.median + whole.spread)
        for part, whole in sides
    )


def _ranked(rows: Sequence[RegionRow]) -> list[RegionRow]:
    differing = [row for row in rows if row.standing != "noise"]
    sizes = [TimeDifference(row.difference, row.noise) for row in differing]
    found = standings(sizes)
    of_rank = Counter(ranked.rank for ranked in found)
    places = {row.order: ranked for row, ranked in zip(differing, found, strict=True)}
    return [
        replace(row, position=ranked.position, rank=ranked.rank, tied=of_rank[ranked.rank] > 1)
        if (ranked := places.get(row.order)) is not None
        else row
        for row in rows
    ]


def ordered(rows: Iterable[RegionRow], sort: Sort) -> tuple[RegionRow, ...]:
    """By rank, then by size; by the time compiled; or by the user's lines."""
    if sort == "time":
        return tuple(sorted(rows, key=lambda row: -(row.compiled.median if row.compiled else 0.0)))
    if sort == "line":
        return tuple(sorted(rows, key=_line))
    return tuple(
        sorted(rows, key=lambda row: (not row.rank, row.position, -abs(row.difference), row.order))
    )


def _line(row: RegionRow) -> tuple[str, int, str]:
    if not row.locations:
        return ("\U0010ffff", 0, row.phase)
    return (row.locations[0].file, row.locations[0].line, row.phase)


def _same(region: Region, label: str) -> object:
    """The key that regions of repeated layers share; a region without a line has its own."""
    lines = tuple((location.file, location.line) for location in region.locations)
    modules = tuple(re.sub(r"\d+", "*", module) for module in region.modules)
    numbered = any(re.search(r"\d", module) for module in region.modules)
    return (label, region.phase, lines, modules) if lines and numbered else region.id


def _row(index: Index, regions: Sequence[Region]) -> RegionRow:
    first = regions[0]
    steps = tuple(step for region in regions for step in index.steps_in(region))
    operations = tuple(operation for region in regions for operation in index.operations_in(region))
    return RegionRow(
        regions=tuple(regions),
        label=region_label(index, first),
        phase=first.phase,
        locations=first.locations,
        place=place_of(index.recording, next(iter(first.locations), None)),
        module=_module([region.modules[0] for region in regions if region.modules]),
        eager=sum_of([region.eager for region in regions if region.eager]),
        compiled=sum_of([region.compiled for region in regions if region.compiled]),
        difference=sum(region.difference for region in regions),
        noise=sum(region.noise for region in regions),
        steps=steps,
        operations=operations,
        eager_work=work_of(index, operations),
        compiled_work=work_of(index, steps),
        known=_known(index, steps, operations),
    )


def _known(
    index: Index, steps: Sequence[CompiledStep], operations: Sequence[EagerOperation]
) -> bool:
    """Whether a region's counterpart is known, and the records for that; not if its call took
    another path from round to round."""
    if index.head.compiled_again or not index.eager_is_known:
        return False
    if not (index.compiled_is_known or index.some_steps_are_known):
        return False
    if any(operation.launches and operation.time is None for operation in operations):
        return False
    if steps and operations:
        return True
    if not index.compiled_is_known or index.unplaced:
        return False
    outside = any(operation.part != "model" for operation in operations) or bool(index.breaks)
    return bool(steps) or index.between_is_known or not outside


def _module(modules: Sequence[str]) -> str:
    """What differs between the layers as `*`."""
    if not modules:
        return ""
    parts = zip(*(module.split(".") for module in modules), strict=False)
    return ".".join(same[0] if len(set(same)) == 1 else "*" for same in parts)


OUTSIDE = "outside graphs"
_PARTS = {"loss": "tcw's loss", "gradients": "autograd", "optimizer": "optimizer"}


def where(row: RegionRow) -> str:
    """`layers.0.attention`, `layers.*.attention` of several, `module 0` where it begins like a line
    number; else the part of a training step, the graph, or that it runs outside all graphs. "" if a
    line or nothing is known."""
    if row.locations:
        return ""
    if row.module:
        return f"module {row.module}" if row.module[0].isdigit() else row.module
    parts = {
        *(operation.part for operation in row.operations),
        *(step.part for step in row.steps),
    } - {"model"}
    if len(parts) == 1:
        return _PARTS[parts.pop()]
    graphs = [step.graph for step in row.steps if step.graph]
    return graphs[0] if graphs else OUTSIDE if row.steps else ""


_CASTS = frozenset({"_to_copy", "convert_element_type"})
_ASKED = frozenset({"to", "float", "half", "double", "bfloat16", "type as", "to copy"})
"""Words for calls that are explicit casts."""
_WORK = frozenset({"convolution", "conv1d", "conv2d", "conv3d"})
_DTYPE = re.compile(r"torch\.(\w+)")


def region_label(index: Index, region: Region) -> str:
    """`linear: cast to bf16` if it does nothing else; `relu + linear: cast to bf16`."""
    operations = [operation for operation in index.operations_in(region) if operation.launches]
    steps = index.steps_in(region)
    names = [operation.operation for operation in operations]
    for step in steps:
        names += [node.target for node in index.nodes_of(step)] or [step.name]
    casts = [bare(name) in _CASTS for name in names]
    if not any(casts):
        return region.label
    dtypes = {*map(_dtype, operations), *(d for step in steps for d in _cast_to(index, step))} - {
        ""
    }
    to = f"cast to {dtype_text(dtypes.pop())}" if len(dtypes) == 1 else "casts"
    if all(casts):
        return region.label if region.label in _ASKED else f"{region.label}: {to}"
    if any(map(_is_work, names)) or region.label.endswith(" backward"):
        return region.label
    parts = region.label.split(" + ")
    return " + ".join(f"{part}: {to}" if _is_work(part) else part for part in parts)


def _is_work(name: str) -> bool:
    return is_product(name) or bare(name) in _WORK


def _dtype(operation: EagerOperation) -> str:
    """`bfloat16` of `_to_copy(f32[4], dtype=torch.bfloat16)`."""
    given = split_arguments(operation.arguments)[1].get("dtype", "")
    match = _DTYPE.search(given) if bare(operation.operation) in _CASTS else None
    return match[1] if match else ""


def _cast_to(index: Index, step: CompiledStep) -> Iterator[str]:
    for node in index.nodes_of(step):
        if bare(node.target) in _CASTS and node.value is not None:
            yield node.value.dtype
