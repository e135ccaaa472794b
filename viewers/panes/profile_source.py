"""The measured time beside source lines, nodes and kernels: columns of other panes."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Kernel, KernelNests
from tcw.viewers.kit.cells import pad_left
from tcw.viewers.kit.figures import MICROSECONDS, MILLISECONDS, TimeUnit
from tcw.viewers.kit.spans import Role, Span
from tcw.viewers.panes import profiled
from tcw.viewers.panes.view import ShownTimes, View
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.attribution import Cost
from tcw.viewers.summary.profile.work import work_of
from tcw.viewers.words import percent, seconds_text

WIDTH = 8
"""Cells of the column, a blank at its end."""
HOT = 0.1
"""From this share of the call on, a line stands out."""
BLANK: Span = (" " * WIDTH, "text")


def _unit_of(profile: Profile) -> TimeUnit:
    """Figures of at most five digits: the column is narrow."""
    most = max(profile.head.eager.median, profile.head.compiled.median)
    return MICROSECONDS if most < 0.1 else replace(MILLISECONDS, digits=2)


def title(view: View) -> str:
    """`µs compiled`."""
    profile = view.derived.profile
    if profile is None:
        return ""
    unit = _unit_of(profile).name
    return f"Δ {unit}" if view.times == "difference" else f"{unit} {view.times}"


def column(view: View, file: str) -> dict[int, Span] | None:
    """Line -> its time as `View.times` wants it; None if nothing was profiled.

    `≤` marks what is a part of a longer time that several lines share: how it divides among them
    was not measured.
    """
    profile = view.derived.profile
    if profile is None:
        return None
    known = view.derived.line_times
    key = (file, view.times)
    if key not in known:
        differences = view.times == "difference"
        known[key] = (
            _differences(profile, file) if differences else _times(profile, file, view.times)
        )
    return known[key]


def _times(profile: Profile, file: str, times: ShownTimes) -> dict[int, Span]:
    prefix = refs.source(file, 0)[:-1]
    found = {}
    for ref, cost in profile.costs.items():
        if ref.startswith(prefix):
            span = _side(profile, cost, times == "eager")
            if span is not None:
                found[refs.split_source(ref)[1]] = span
    return found


def _side(profile: Profile, cost: Cost, eager: bool) -> Span | None:
    seconds = cost.eager if eager else cost.compiled
    if not seconds:
        return None
    whole = (profile.head.eager if eager else profile.head.compiled).median
    shared = not eager and cost.shared
    role: Role = "warn" if seconds >= HOT * whole else "dim"
    unit = _unit_of(profile)
    words = ("≤" if shared else "") + unit.short(seconds)
    return (pad_left(words, WIDTH - 1) + " ", role)


def _differences(profile: Profile, file: str) -> dict[int, Span]:
    """Show a region's difference at its first line in the file."""
    sums: dict[int, list[float]] = {}
    for row in profile.rows:
        lines = [location.line for location in row.locations if location.file == file]
        if lines:
            before = sums.setdefault(min(lines), [0.0, 0.0])
            before[0] += row.difference
            before[1] += row.noise
    unit = _unit_of(profile)
    found: dict[int, Span] = {}
    for line, (difference, noise) in sums.items():
        quiet = abs(difference) <= noise
        words = unit.short(difference)
        words = f"+{words}" if difference > 0 else words
        role = profiled.role_of(difference, quiet)
        found[line] = (pad_left(words, WIDTH - 1) + " ", role)
    return found


def hottest_line(view: View, file: str) -> int:
    """The line in this file that takes most of the current region; 0 if there is no region, or
    the reader has selected something else."""
    profile = view.derived.profile
    if profile is None or not view.region or view.ref:
        return 0
    row = profile.row_of(view.region)
    lines = (
        [location.line for location in row.locations if location.file == file]
        if row is not None
        else []
    )

    def taken(line: int) -> tuple[float, float]:
        cost = profile.line_costs.get((file, line))
        return (cost.compiled, cost.eager) if cost is not None else (0.0, 0.0)

    return max(lines, key=taken, default=0)


def node_times(view: View, graph: str) -> dict[str, float]:
    """Node -> seconds of the kernels that it is the last node of; a kernel is timed whole."""
    profile, derived = view.derived.profile, view.derived
    if profile is None:
        return {}
    if graph not in derived.node_times:
        last: dict[str, str] = {}
        for node in derived.recording.nodes(graph).values():
            cost = profile.costs.get(refs.node(graph, node.name))
            if cost is not None and node.op.startswith("call"):
                last.update(dict.fromkeys(cost.steps, node.name))
        times: dict[str, float] = {}
        for step, name in last.items():
            timed = profile.index.steps[step].time
            if timed is not None:
                times[name] = times.get(name, 0.0) + timed.median
        derived.node_times[graph] = times
    return derived.node_times[graph]


def kernel_seconds(view: View, kernel: str) -> float | None:
    """What a kernel took in the profiled call, all its launches together; None: not measured."""
    profile = view.derived.profile
    return profile.kernel_seconds.get(kernel) if profile is not None else None


def nest_times(view: View, kernel: Kernel) -> dict[int, Span]:
    """Line of a kernel's text -> what its loop nest took; a kernel of one nest is timed as a whole.

    `≤` marks nests of a kernel that were not timed one by one: each is a part of its time.
    """
    profile, seconds = view.derived.profile, kernel_seconds(view, kernel.id)
    if profile is None or seconds is None or not kernel.text:
        return {}
    every = view.recording.all(KernelNests)
    nests = next((nests for nests in every if nests.kernel == kernel.id and nests.nests), None)
    times: dict[int, float] = {}
    if nests is not None:
        times = {nest.line: nest.time.median for nest in nests.nests}
    else:
        times = dict.fromkeys(kernel.loops, seconds)
    shared = nests is None and len(times) > 1
    unit, spans = _unit_of(profile), {}
    for line, taken in times.items():
        role: Role = "warn" if taken >= HOT * profile.head.compiled.median else "dim"
        words = ("≤" if shared else "") + unit.short(taken)
        spans[line] = (pad_left(words, WIDTH - 1) + " ", role)
    return spans


def kernel_words(view: View, kernel: Kernel) -> list[str]:
    """`157.9 µs`, `31% of the roofline`; empty if it was not measured."""
    profile = view.derived.profile
    seconds = kernel_seconds(view, kernel.id)
    if profile is None or seconds is None:
        return []
    steps = profile.index.steps_of_kernel.get(kernel.id, ())
    words = [seconds_text(seconds) + (f" in {len(steps)} calls" if len(steps) > 1 else "")]
    share = work_of(profile.index, steps).share
    if share is not None:
        words.append(f"{percent(share)} of the roofline")
    return words
