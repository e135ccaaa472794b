"""What needs attention, grouped by cause, then site, and ranked by measured cost.

Wrong results come first, then a slower result without a known cause, code that runs eagerly
although it should be compiled, and seconds of recompiling, also those that a graph break causes.
The other breaks follow, by the graphs and bytes that they add to each call. CUDA graphs that are
recorded again or not used come last.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tcw.compiler.trace.records import (
    Advice,
    CallStart,
    EagerFallback,
    FixTrial,
    Numerics,
    Partition,
    WrongStage,
)
from tcw.viewers.collected import grouped
from tcw.viewers.command_line import command_line
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import BreakSite, Crossings, ordered_advice
from tcw.viewers.summary.code_faults import REALIZE, code_faults
from tcw.viewers.summary.compile_costs import compile_costs
from tcw.viewers.summary.cudagraphs import CudagraphCost, cudagraph_costs
from tcw.viewers.summary.eager_code import EagerCode, eager_code
from tcw.viewers.summary.fixes import best_of
from tcw.viewers.summary.guard_share import guard_share, outside_words
from tcw.viewers.summary.numerics import alias_words, rejected_words
from tcw.viewers.summary.on_stack import on_stack
from tcw.viewers.summary.own_words import without_reprs
from tcw.viewers.summary.place import Place, place_of
from tcw.viewers.summary.recompiles import RecompileCause
from tcw.viewers.summary.verdict import USELESS
from tcw.viewers.summary.wrong_stage import stage_words
from tcw.viewers.words import (
    bytes_text,
    error_text,
    listed,
    milliseconds_text,
    plural,
    seconds_text,
)

FindingKind = Literal[
    "numerics", "fallback", "recompile", "break", "cudagraph", "slower", "guards", "compile"
]
_EAGER = "eager"
"""The cost of what runs eagerly as a whole."""
_FAULTS = 3
"""At most this many of what generated code does badly are named."""


@dataclass(frozen=True)
class Finding:
    """One thing that needs attention. All texts may contain the user's words: show them as data."""

    kind: FindingKind
    cost: str
    """Measured, in at most nine cells: `12.8 s`, `+1 graph`, `eager`."""
    title: str
    place: Place | None = None
    fixes: tuple[Advice, ...] = ()
    """Best first; ours before torch's."""
    also: tuple[Advice, ...] = ()
    """What the other breaks of its line need, each by its own fix, besides one of `fixes`."""
    compile_ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Further facts, one phrase each."""
    source: (
        BreakSite | RecompileCause | EagerFallback | Numerics | Partition | CudagraphCost | None
    ) = None
    """The records behind the finding."""
    causes: tuple[RecompileCause, ...] = ()
    """Of a break: recompiles of the code after it, which would go with it. Of a recompile limit:
    the cause of most of them."""

    trials: tuple[FixTrial, ...] = ()
    """Of its fixes, in the order in which they were tried."""
    consequences: tuple[Finding, ...] = ()
    """Findings that go away with its fix."""

    @property
    def key(self) -> str:
        """The same in two recordings of the same lines, wherever these are in the file."""
        where = "" if self.place is None else os.path.basename(self.place.file)
        line = "" if self.place is None else self.place.text.strip()
        subject = self.title
        if isinstance(self.source, BreakSite):
            subject = self.source.type
        elif isinstance(self.source, RecompileCause):
            subject = self.source.change.name
        elif isinstance(self.source, EagerFallback):
            subject = self.source.function
        elif self.kind in ("slower", "guards", "compile"):
            subject = ""  # the title has figures
        return " | ".join((self.kind, where, line, subject))

    @property
    def fix(self) -> FixTrial | None:
        """The fix that was tried and helps; None if none is known."""
        return best_of(self.trials)

    @property
    def glyph(self) -> str:
        return "↻" if self.kind == "recompile" else "✗"

    @property
    def code(self) -> str:
        """A fix that can be pasted, first one that was tried; "" if there is none."""
        if self.fix is not None and self.fix.advice.code:
            return self.fix.advice.code
        return next((fix.code for fix in self.fixes if fix.code), "")


def findings_of_both(one: Sequence[Finding], other: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of two recordings of one model: those of the first, ranked by its costs, and
    where they rank in the other those that only the other has. Two lines may have the same title:
    two `print()`."""
    both = list(one)
    known = {_site(finding) for finding in one}
    for rank, finding in enumerate(other):
        if _site(finding) not in known:
            both.insert(rank, finding)
    return tuple(both)


def _site(finding: Finding) -> tuple[str, tuple[str, int] | None]:
    place = finding.place
    return finding.title, (place.file, place.line) if place else None


def findings_of(
    recording: Recording, breaks: tuple[BreakSite, ...], causes: tuple[RecompileCause, ...]
) -> tuple[Finding, ...]:
    """All findings, the costliest first."""
    found = [
        *_drawn_again(recording),
        *_numerics(recording),
        *_fallbacks(recording, breaks, causes),
    ]
    costly: list[Finding] = []
    carried: dict[int, list[RecompileCause]] = {}
    for cause in causes:
        site = next((site for site in breaks if _made_at(cause, site)), None)
        if site is None:
            costly.append(_recompile(cause))
        else:
            carried.setdefault(id(site), []).append(cause)
    ranked = sorted(
        _without_failed_backends(recording, breaks),
        key=lambda site: (
            id(site) not in carried, -(site.extra_graphs or 0), -(site.crossings.bytes or 0)
        ),
    )  # fmt: skip
    joined = _joined(ranked)
    for site in ranked:
        if id(site) in joined:
            left = eager_code(recording, site)
            costly.append(_break(site, joined[id(site)], carried.get(id(site), ()), left))
    found += sorted(costly, key=lambda finding: (finding.cost != _EAGER, _rank(finding)))
    found += _cudagraphs(recording)
    found += _guards(recording)
    found += _compiles(recording)
    wrong = sum(finding.kind == "numerics" for finding in found)
    found[wrong:wrong] = _slower(recording, found)
    found = [replace(finding, title=without_reprs(finding.title)) for finding in found]
    return with_trials(found, recording.all(FixTrial))


def with_trials(findings: Sequence[Finding], trials: Sequence[FixTrial]) -> tuple[Finding, ...]:
    """The findings with the trials of their fixes. One that goes away with another one's fix is
    that one's consequence; where each removes the other, the second one is."""
    if not trials:
        return tuple(findings)
    of = {
        finding.key: tuple(trial for trial in trials if trial.finding == finding.key)
        for finding in findings
    }
    tried = [replace(finding, trials=of[finding.key]) for finding in findings]
    causes: dict[str, str] = {}
    for finding in tried:
        for key in finding.fix.gone if finding.fix is not None else ():
            if key != finding.key and finding.key not in causes:
                causes.setdefault(key, finding.key)
    return tuple(
        replace(
            finding,
            consequences=tuple(one for one in tried if causes.get(one.key) == finding.key),
        )
        for finding in tried
        if finding.key not in causes
    )


def _slower(recording: Recording, found: Sequence[Finding]) -> list[Finding]:
    """A finding for a result slower than eager that no other finding explains."""
    speed, settings = recording.speed, recording.settings
    fixes: tuple[Advice, ...]
    notes: tuple[str, ...]
    if speed is None or settings is None:
        return []
    if speed.compiled_again and not any(finding.kind != "cudagraph" for finding in found):
        graphs = plural(speed.compiled_again, "graph")
        title = f"calls with the same inputs compile again: {graphs} in the timed rounds"
        return [Finding("slower", "again", title)]
    if speed.in_noise or speed.speedup >= 1 or speed.compiled_again:
        return []
    if any(_slows(finding) for finding in found):
        return []
    look = Advice(
        text="It breaks a call down, kernel by kernel", code=command_line("profile", settings)
    )
    more = f"+{milliseconds_text(speed.compiled_ms - speed.eager_ms)}"
    cost = "slower" if speed.noise >= USELESS else more
    place, notes = None, ()
    if not any(graph.kind == "captured" for graph in recording.graphs.values()):
        cause, fixes = ": torch.compile captured no graph", ()
    elif outside := outside_words(recording, speed):
        cause = f": {outside}"
        larger = Advice(text="Compile a larger part of the program, or more data in a call")
        fixes = (larger, look)
    elif faults := code_faults(recording):
        kept = Advice(text="Results are kept instead of computed in each reader", code=REALIZE)
        again = faults[0].kind == "computed again"
        cause, fixes = f": {faults[0].text}", (kept, look) if again else (look,)
        place = place_of(recording, faults[0].location)
        notes = tuple(fault.text for fault in faults[1:_FAULTS])
    else:
        cause, fixes = "; the cause was not found", (look,)
    title = f"each call is slower than eager{cause}"
    return [Finding("slower", cost, title, place, fixes, notes=notes)]


def _guards(recording: Recording) -> Iterator[Finding]:
    """Guards that take a good part of each call."""
    share = guard_share(recording)
    if share is not None:
        cost, place = milliseconds_text(share.us / 1e3), place_of(recording, share.location)
        yield Finding("guards", cost, share.title, place, share.advice, notes=share.notes)


def _compiles(recording: Recording) -> Iterator[Finding]:
    """Compiles that are long for a reason that the source hides."""
    for cost in compile_costs(recording):
        yield Finding(
            "compile", cost.cost, cost.title, place_of(recording, cost.location), cost.advice,
            compile_ids=(cost.compile_id,) if cost.compile_id else (), notes=cost.notes,
        )  # fmt: skip


def _slows(finding: Finding) -> bool:
    """Whether this costs time in every call, not only once."""
    source = finding.source
    if isinstance(source, RecompileCause):
        return bool(source.repeated)
    if isinstance(source, BreakSite):
        return finding.cost == _EAGER or bool(source.extra_graphs)
    return finding.kind == "fallback"


def _rank(finding: Finding) -> float:
    """Most seconds of recompiling first; breaks that cost none keep their order."""
    source = finding.source
    causes = [source] if isinstance(source, RecompileCause) else finding.causes
    return -sum(cause.seconds or 0.0 for cause in causes)


def _made_at(cause: RecompileCause, site: BreakSite) -> bool:
    """Whether the value that changed was left on the stack by the line of the break."""
    first = cause.frames[0]
    on = first.why is not None and on_stack(first.why)
    return on and first.compile_id.partition("/")[0] in site.resumed


def _without_failed_backends(recording: Recording, breaks: Sequence[BreakSite]) -> list[BreakSite]:
    """Without the breaks of a backend that failed or at a call of a disabled function: the finding
    of the eager fallback has them."""
    left = _left_at(breaks)
    fallbacks = {
        (fallback.compile_id, fallback.location.file, fallback.location.line)
        for fallback in recording.all(EagerFallback)
        if fallback.location is not None and not _is_within(fallback, left)
    }
    return [
        site
        for site in breaks
        if any((cid, site.place.file, site.place.line) not in fallbacks for cid in site.compile_ids)
    ]


def _joined(ranked: Sequence[BreakSite]) -> dict[int, list[BreakSite]]:
    """The sites that get a finding, by id, each with those that it speaks for: sites that cost
    nothing more, on the same line, asked for by the same line of a library or, for another reason,
    with the same code as their fix."""
    joined: dict[int, tuple[BreakSite, list[BreakSite]]] = {}
    for site in ranked:
        alike = [also for head, also in joined.values() if _belongs(site, head)]
        if alike and _adds_nothing(site):
            alike[0].append(site)
        else:
            joined[id(site)] = (site, [])
    return {key: also for key, (_, also) in joined.items()}


def _belongs(site: BreakSite, head: BreakSite) -> bool:
    if site.place.ref == head.place.ref:
        return True
    if site.gb == head.gb and _asked_at(site) == _asked_at(head):
        return True
    code = [
        break_site.advice[0].code
        for break_site in (site, head)
        if break_site.advice and break_site.advice[0].by == "tcw"
    ]
    return site.gb != head.gb and len(code) == 2 and code[0] == code[1] != ""


def _asked_at(site: BreakSite) -> tuple[str, int]:
    """The line at which torch stopped: in a library, or where it is reported."""
    inside = site.inside
    return (inside.file, inside.line) if inside else (site.place.file, site.place.line)


def _adds_nothing(site: BreakSite) -> bool:
    """Whether the function would have as many breaks without this one."""
    return site.outcome == "break" and site.extra_graphs == 0 and site.skipped is None


def _numerics(recording: Recording) -> list[Finding]:
    numerics = recording.numerics
    if numerics is None or (numerics.within is not False and not numerics.aliases):
        return []
    engine = recording.settings.engine if recording.settings else "torch.compile"
    if numerics.within is not False:
        return [_aliases(numerics, engine)]
    worst = numerics.worst[0] if numerics.worst else None
    where = f" in {_output_words(worst.path)} of call {worst.call}" if worst else ""
    how = f"max error {error_text(numerics.max_abs)}"
    if worst and worst.note:
        how = f"{how} ({worst.note})" if worst.max_abs or not numerics.compared else worst.note
    title = f"results of {engine} differ from eager{where}: {how}"
    notes = [numerics.note or rejected_words(numerics), *map(alias_words, numerics.aliases[:1])]
    stage = recording.last(WrongStage)
    fixes: tuple[Advice, ...] = ()
    place = None
    if stage is not None:
        notes.insert(0, stage_words(recording, stage))
        kernel = recording.kernels.get(stage.kernel)
        place = place_of(
            recording, stage.location or next(iter(kernel.locations if kernel else ()), None)
        )
    if stage is not None and stage.stage and recording.settings is not None:
        options = ("--call", str(stage.call)) if stage.call > 1 else ()
        code = command_line("repro", recording.settings, options)
        fixes = (Advice(text="It writes a file that shows the error", code=code),)
    return [
        Finding("numerics", "results", title, place, fixes, notes=tuple(notes), source=numerics)
    ]


def _drawn_again(recording: Recording) -> list[Finding]:
    """Random numbers of the forward that the backward draws again instead of using them."""
    found = grouped(
        ((operation.name, operation.location), partition)
        for partition in recording.all(Partition)
        for operation in partition.drawn_again
    )
    return [
        Finding(
            "numerics",
            "gradients",
            f"{name} is recomputed in the backward with other random numbers than in the forward",
            place_of(recording, location),
            notes=(
                "gradients do not belong to the outputs: the partitioner has it computed again",
            ),
            source=partitions[0],
        )
        for (name, location), partitions in found.items()
    ]


def _aliases(numerics: Numerics, engine: str) -> Finding:
    """Memory that is shared on one side only: the values are right until one is changed."""
    first, more = numerics.aliases[0], len(numerics.aliases) - 1
    title = f"with {engine}, {alias_words(first)}"
    notes = ["whoever changes one of them in place changes the other only where it is shared"]
    if more:
        notes.append(f"{plural(more, 'other pair')} too")
    return Finding("numerics", "results", title, notes=tuple(notes), source=numerics)


def _output_words(path: str) -> str:
    """`the output`, `output[0].logits`, `the gradient of fc1.weight`."""
    if path.startswith("grad "):
        return f"the gradient of {path[5:]}"
    return "the output" if path == "out" else re.sub(r"^out(?=[.\[])", "output", path)


def _left_at(breaks: Sequence[BreakSite]) -> set[tuple[str, int]]:
    """Where breaks leave the function around them to Python."""
    return {(site.place.file, site.place.line) for site in breaks if site.skipped is not None}


def _is_within(fallback: EagerFallback, left: Collection[tuple[str, int]]) -> bool:
    """Whether this is a call of a disabled function where all around it runs eagerly, too."""
    place = fallback.location
    return fallback.kind == "disabled" and place is not None and (place.file, place.line) in left


def _fallbacks(
    recording: Recording, breaks: Sequence[BreakSite], causes: Sequence[RecompileCause]
) -> list[Finding]:
    left = _left_at(breaks)
    alike = grouped(
        ((fallback.kind, fallback.function, fallback.reason), fallback)
        for fallback in recording.all(EagerFallback)
        if not _is_within(fallback, left)
    )
    found = []
    for (kind, function, _), records in alike.items():
        first = records[0]
        what = function or first.compile_id or "a frame"
        when = f" from call {first.call} on" if first.call else ""
        if not first.call and recording.all(CallStart):
            when = " in the timed calls"
        why = fallback_reason(first)
        ids = dict.fromkeys(record.compile_id for record in records if record.compile_id)
        finding = Finding(
            kind="fallback",
            cost="stops" if first.stops else "eager",
            title=f"{what} {_runs(first, when)}: {why.splitlines()[0] if why else kind}",
            place=place_of(recording, first.location),
            fixes=ordered_advice(first.advice),
            compile_ids=tuple(ids),
            source=first,
        )
        found.append(_with_cause(finding, causes) if first.by_limit else finding)
    return found


def _runs(record: EagerFallback, when: str) -> str:
    """What happens to it; `when` is from which call on."""
    if record.stops:
        return f"stops with an error{f' in call {record.call}' if record.call else ''}"
    return f"runs eagerly{when}"


def fallback_reason(record: EagerFallback) -> str:
    """Why torch gave up; its own words but for the limit, which it words by its setting."""
    return "the recompile limit was reached" if record.by_limit else record.reason


def _with_cause(finding: Finding, causes: Sequence[RecompileCause]) -> Finding:
    """A frame's recompile limit with the cause of most of its recompiles, and what to do about
    that."""
    frames = {one.partition("/")[0] for one in finding.compile_ids}
    counts = [
        sum(frame.compile_id.partition("/")[0] in frames for frame in cause.frames)
        for cause in causes
    ]
    if not any(counts):
        return finding
    most = max(counts)
    cause = causes[counts.index(most)]
    note = f"{most} of {plural(sum(counts), 'recompile')} for {values_text(cause)}"
    known = {fix.code for fix in cause.advice if fix.code}
    fixes = (*cause.advice, *(fix for fix in finding.fixes if fix.code not in known))
    return replace(finding, notes=(note,), fixes=fixes, causes=(cause,))


def _cudagraphs(recording: Recording) -> Iterator[Finding]:
    """CUDA graphs that were recorded again, and those that were not used, by reason and line."""
    for cost in cudagraph_costs(recording):
        ids = dict.fromkeys(record.compile_id for record in cost.records if record.compile_id)
        yield Finding(
            kind="cudagraph",
            cost="launches" if cost.seconds is None else seconds_text(cost.seconds),
            title=cost.title,
            place=place_of(recording, cost.location),
            fixes=cost.fixes,
            compile_ids=tuple(ids),
            notes=cost.notes,
            source=cost,
        )


def _recompile(cause: RecompileCause) -> Finding:
    return Finding(
        kind="recompile",
        cost=seconds_text(cause.seconds) if cause.seconds is not None else "not done",
        title=recompile_title(cause),
        place=cause.place,
        fixes=cause.advice,
        compile_ids=cause.compile_ids,
        source=cause,
    )


def recompile_title(cause: RecompileCause) -> str:
    """`call 4 recompiled 3 frames: x.size(0) 4 → 6`."""
    who = f"{cause.callers} recompiled " if cause.callers else ""
    distinct = dict.fromkeys(frame.compile_id.partition("/")[0] for frame in cause.frames)
    what = plural(len(distinct), "frame")
    if len(distinct) == 1:
        what = cause.functions[0] or f"frame {next(iter(distinct))}"
        what += f" {len(cause.frames)} times" if len(cause.frames) > 1 else ""
    subject = f"{who}{what}" if who else f"{what} recompiled"
    return f"{subject}: {values_text(cause)}"


def values_text(cause: RecompileCause) -> str:
    """What changed, with at most four of its values: `step 0 → 1 → 2 → …`."""
    if len(cause.values) > 2:
        shown = cause.values if len(cause.values) <= 4 else (*cause.values[:3], "…")
        return f"{cause.change.name} {' → '.join(shown)}"
    return cause.change.text


def _break(
    site: BreakSite,
    also: Sequence[BreakSite],
    carried: Sequence[RecompileCause],
    left: EagerCode | None = None,
) -> Finding:
    """The finding of a break. `also`: breaks that cost nothing more. `carried`: recompiles of what
    comes after it, caused by the value it computes. `left`: the function that runs eagerly."""
    cost = f"+{plural(site.more_graphs, 'graph')}" if site.more_graphs else "cut"
    cost = {"skip-frame": "eager", "error": "stops"}.get(site.outcome, cost)
    notes = []
    for cause in carried:
        who = cause.callers or "a call"
        several = len(carried) > 1 or not site.more_graphs
        took = f", {seconds_text(cause.seconds)}" if several and cause.seconds is not None else ""
        why = "for its value"
        if cause.change.seen == "deallocated":
            why = f"for {cause.change.name}, a new object each time"
        notes.append(f"{who} recompiled {why}{took}")
    # what helps against a value does not help against a new object, and is the break's own advice
    kept = [
        advice for cause in carried if cause.change.seen == "deallocated" for advice in cause.advice
    ]
    again = [cause.seconds for cause in carried if cause.seconds is not None]
    if again and site.more_graphs:
        notes.append(cost)
        cost = seconds_text(sum(again))
    if left is not None:
        notes += left.notes
        cost = _EAGER
    if _adds_nothing(site):
        notes.append("no graph follows it")
    elif site.outcome == "break" and not site.more_graphs and left is None:
        notes.append("no graph precedes it")
    crossing = crossing_text(site.crossings)
    if crossing:
        notes.append(crossing)
    if site.host_waits and site.outcome == "break":
        notes.append("the host waits")
    if site.count > 1:
        notes.append(f"in {site.count} compiles")
    if site.inside is not None:
        file = os.path.basename(site.inside.file)
        notes.append(f"torch reports it at {file}:{site.inside.line}")
    notes += [
        f"also breaks {_where(other, site)}: {_break_title(other)}"
        for other in also
        if site.inside is None or (other.place.file, other.place.line) != _asked_at(site)
    ]
    every = (site, *also)
    compile_ids = [
        *(break_site.compile_ids for break_site in every),
        *(recompile_cause.compile_ids for recompile_cause in carried),
    ]
    return Finding(
        kind="break",
        cost=cost,
        title=f"{left.function} runs eagerly: {_break_title(site)}" if left else _break_title(site),
        place=site.place,
        fixes=(*kept, *next((break_site.advice for break_site in every if break_site.advice), ())),
        also=tuple(_own_fixes(site, also)),
        compile_ids=tuple(dict.fromkeys(cid for ids in compile_ids for cid in ids)),
        notes=tuple(notes),
        source=site,
        causes=tuple(carried),
    )


def _own_fixes(site: BreakSite, also: Sequence[BreakSite]) -> Iterator[Advice]:
    """The fixes of `also` on the same line, if they are others than that of `site`."""
    known = {
        break_site.advice[0].code or break_site.advice[0].text
        for break_site in (site,)
        if break_site.advice
    }
    for other in also:
        if not other.advice or other.place.ref != site.place.ref or not known:
            continue
        fix = other.advice[0]
        if fix.by == "tcw" and (fix.code or fix.text) not in known:
            known.add(fix.code or fix.text)
            yield fix


def _where(other: BreakSite, site: BreakSite) -> str:
    if other.place.ref == site.place.ref:
        return "there"
    return f"at {os.path.basename(other.place.file)}:{other.place.line}"


def _break_title(site: BreakSite) -> str:
    return f"{site.title} ({site.gb})" if site.gb else site.title


def crossing_text(crossings: Crossings) -> str:
    """`x, h cross (1.0 MB)`; "" if nothing crosses."""
    if not crossings.names:
        return ""
    verb = "crosses" if len(crossings.names) == 1 else "cross"
    return f"{listed(crossings.names)} {verb} ({bytes_text(crossings.bytes)})"
