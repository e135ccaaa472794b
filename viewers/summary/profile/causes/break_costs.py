"""A graph break: what it splits, what crosses, and what the second graph costs.

Its time is calculated, as a lower bound: tensors that cross are read once more, at the bandwidth
measured for their size, and each graph that resumes pays its share of guards, wrapper and dispatch.
Which tensors had to be written only for it, and what the lost fusion costs, cannot be known without
compiling the function whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tcw.compiler.trace.records import CompiledStep
from tcw.compiler.trace.roofline import bandwidth_at
from tcw.viewers.summary.breaks import BreakSite, break_sites
from tcw.viewers.summary.profile.causes.cause import Cause, Suggestion
from tcw.viewers.summary.profile.causes.remedies import of_break
from tcw.viewers.summary.profile.causes.step_words import step_word
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import bytes_text, listed, plural, seconds_text

_PER_GRAPH = ("guards", "wrapper", "dispatch")
"""Lines of the account to which each graph of a call contributes."""


def breaks(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    graphs = {_compile_id(step) for step in index.steps.values() if step.graph}
    for site in break_sites(index.recording):
        if all(record.call > index.head.call for record in site.records):
            continue
        if site.outcome != "break" or site.extra_graphs:
            yield _cause(index, rows, site, max(1, len(graphs)))


def _cause(index: Index, rows: Sequence[RegionRow], site: BreakSite, graphs: int) -> Cause:
    crossings = site.crossings
    traffic = crossings.bytes or 0
    rate = bandwidth_at(index.ceilings, traffic) if index.ceilings and traffic else None
    moved = traffic / rate if rate else 0.0
    host = _host(index) * site.more_graphs / graphs
    notes = []
    if crossings.names:
        names = listed(crossings.names)
        size = bytes_text(crossings.bytes)
        took = f", {seconds_text(moved)} at the measured bandwidth" if moved else ""
        notes.append(f"{names} cross: {size} in memory, to be read again{took}")
    if site.host_waits:
        notes.append("the host waits for the data")
    if site.more_graphs:
        share = f": {seconds_text(host)} of guards, wrapper and dispatch" if host else ""
        notes.append(f"{plural(site.more_graphs, 'more graph')} in each call{share}")
    split = [row for row in rows if _spans(row)]
    sides = _sides(index, site)
    what = f" between {sides[0]} and {sides[1]}" if sides else ""
    whole = ": the whole function runs in Python" if site.outcome != "break" else ""
    return Cause(
        kind="break",
        title=f"graph break ({site.title}){what}{whole}",
        seconds=moved + host,
        estimated=True,
        regions=tuple(region.id for row in split for region in row.regions),
        place=site.place,
        notes=tuple(notes),
        fixes=site.advice,
        suggestions=of_break(index.recording, site) or _source_change(site),
    )


def _source_change(site: BreakSite) -> tuple[Suggestion, ...]:
    """Named so that it is not forgotten: it needs a person."""
    code = next((advice.code for advice in site.advice if advice.code), "")
    where = f"{site.place.file}:{site.place.line}"
    return (Suggestion(id=f"source {where}", words=code, options=()),) if code else ()


def _sides(index: Index, site: BreakSite) -> tuple[str, str] | None:
    """What compiled code runs last before the break and first after it."""
    steps = [step for step in index.steps.values() if step.graph and step.phase != "backward"]
    for first, second in pairwise(steps):
        if _compile_id(first) in site.compile_ids and _compile_id(second) != _compile_id(first):
            return step_word(index, first), step_word(index, second)
    return None


def _compile_id(step: CompiledStep) -> str:
    return step.graph.rpartition("/")[0]


def _host(index: Index) -> float:
    """Host seconds of a call spent on its graphs."""
    account = index.account("compiled")
    lines = account.lines if account is not None else ()
    return sum(line.time.median for line in lines if line.name in _PER_GRAPH)


def _spans(row: RegionRow) -> bool:
    """Whether a region's steps are in several graphs of one direction."""
    return len({step.graph for step in row.steps if step.graph and step.phase == row.phase}) > 1
