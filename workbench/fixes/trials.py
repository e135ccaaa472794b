"""Tries the advice on each finding, then all that helped together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from msgspec import structs

from tcw.compiler.trace.records import (
    Advice,
    AnyRecord,
    CallStart,
    CaptureCounts,
    FixTrial,
    Numerics,
    Progress,
    Settings,
    Waiting,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.fixes import words
from tcw.workbench.fixes.candidates import Candidate, candidates, merged, pasting, source_patch

SECONDS = 20.0
"""All trials together take at most so long, and as long as the recording took up to capture; so
may the calls without a fix before them, and all fixes together."""
_LEAST_SECONDS = 2.0
"""A trial gets at least so long."""


class Runs(Protocol):
    """What runs a trial: `tcw.workbench.worker.client.Trials`."""

    def run(
        self, number: int, settings: Settings, seconds: float, eager: bool = False
    ) -> list[AnyRecord]: ...


@dataclass(frozen=True)
class Run:
    """A finished trial."""

    summary: Summary
    counts: CaptureCounts
    numerics: Numerics | None
    cut: str
    """What cut it short; "" if nothing did."""
    seconds: float

    @property
    def keys(self) -> dict[str, Finding]:
        """Its findings by key."""
        return {finding.key: finding for finding in self.summary.findings}


def tried(
    settings: Settings,
    recording: Recording,
    runs: Runs,
    seconds: float,
    see: Callable[[AnyRecord], None] = lambda _: None,
) -> Iterator[FixTrial]:
    """A record of each fix that was tried, as soon as it was; of all chosen ones together last."""
    yield from _Trials(settings, runs, seconds, see).all(_first(recording))


def seconds_for(recording: Recording) -> float:
    """How long trials may take: at most as long as the recording took up to capture, and
    `SECONDS`."""
    first = next(iter(recording.all(CallStart)), None)
    summary = summarise(_first(recording))
    capture = sum(
        stage.seconds for stage in summary.stages if stage.stage in ("capture", "autograd")
    )
    return min(SECONDS, (first.at if first is not None else SECONDS) + capture)


def _first(recording: Recording) -> Recording:
    """The part of the engine that ran first."""
    return next(iter(recording.engines.values()), recording)


_UNTRIED = ("numerics", "slower", "guards", "compile", "cudagraph")
"""Kinds of findings whose fixes show in what a trial does not look at: times, and whole calls."""


class _Trials:
    def __init__(
        self,
        settings: Settings,
        runs: Runs,
        seconds: float,
        see: Callable[[AnyRecord], None],
    ) -> None:
        self._given = settings
        self._base = structs.replace(
            settings,
            engine="inductor",
            overrides={},
            until="capture",
            record="default",
            profile=False,
            verify=False,
            memory=False,
            device="cpu",
            arch="",
            timeout=None,
        )
        self._runs = runs
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._see = see
        self._without: Run | None = None
        self._number = 1

    def all(self, recording: Recording) -> Iterator[FixTrial]:
        wanted = [
            (finding, candidates(finding, recording, self._base))
            for finding in summarise(recording).findings
            if finding.kind not in _UNTRIED
        ]
        if not any(made for _, made in wanted):
            return
        self._without = self._run(1, self._base, "the calls without a fix")
        if self._without is None or self._without.cut:
            return
        if self._without.counts.failures:
            self._run(1, self._base, "the calls in eager", eager=True)
        self._ends = time.monotonic() + self._seconds
        chosen: list[Candidate] = []
        gone: set[str] = set()
        left: list[Candidate] = []
        for finding, made in wanted:
            records: list[FixTrial] = []
            for number, candidate in enumerate(made):
                if finding.key in gone:
                    break
                record = self._try(candidate)
                if record is None:
                    return
                yield record
                records.append(record)
                if record.kept:
                    chosen.append(candidate)
                    gone.update(record.gone)
                    left += made[number + 1 :]
                    break
        trains = self._given.grad == "train"
        if len(chosen) > 1 or (chosen and trains):
            settings, taken = merged(self._base, chosen)
            if trains:  # what autograd makes of them is seen once, for all of them
                settings = structs.replace(settings, until="autograd")
            together = Candidate(
                "",
                Advice(text=f"all {len(taken)} fixes"),
                settings,
                source_patch(self._base, settings),
                ", ".join(dict.fromkeys(one.effect for one in taken if one.effect)),
            )
            self._ends = max(self._ends, time.monotonic() + self._seconds)
            record = self._try(together)
            if record is not None:
                yield record
        for candidate in left:
            record = self._try(candidate)
            if record is None:
                return
            yield record

    def _try(self, candidate: Candidate) -> FixTrial | None:
        """The record of a trial; None if there is no time for it."""
        assert self._without is not None
        self._number += 1
        run = self._run(self._number, candidate.settings, _words(candidate.advice))
        if run is None:
            return None
        record = FixTrial(
            finding=candidate.finding,
            advice=candidate.advice,
            patch=candidate.patch,
            **pasting(self._base, candidate.settings),
            before=self._without.counts,
            effect=candidate.effect,
            seconds=run.seconds,
        )
        if run.cut:
            return structs.replace(record, reason=run.cut)
        before, after = self._without.keys, run.keys
        results, differs = _results(run.numerics)
        record = structs.replace(
            record,
            after=run.counts,
            results=results,
            differs=differs,
            gone=tuple(key for key in before if key not in after),
            new=tuple(key for key in after if key not in before),
        )
        reason = _against(record, run, candidate.finding)
        return structs.replace(record, reason=reason, kept=not reason)

    def _run(self, number: int, settings: Settings, what: str, eager: bool = False) -> Run | None:
        """None if there is no time left for it."""
        left = self._ends - time.monotonic()
        least = _LEAST_SECONDS if self._without is None else self._without.seconds
        if left < least:
            return None
        self._see(Progress(stage="capture", activity=f"trying {what}"))
        began = time.monotonic()
        *records, last = self._runs.run(number, settings, max(left, _LEAST_SECONDS), eager)
        seconds = round(time.monotonic() - began, 3)
        made = Recording()
        made.feed(records)
        assert isinstance(last, Waiting)
        summary = summarise(made)
        numerics = next(iter(made.all(Numerics)), None)
        return Run(summary, counts_of(summary), numerics, last.why, seconds)


def _words(advice: Advice) -> str:
    return (advice.code or advice.text).strip().split("\n")[0]


def counts_of(summary: Summary) -> CaptureCounts:
    """What a recording up to capture comes to."""
    return CaptureCounts(
        graphs=summary.graphs,
        breaks=len(summary.breaks),
        compiles=summary.compiles,
        eager=sum(finding.cost == "eager" for finding in summary.findings),
        failures=int(summary.failure is not None),
    )


def _results(numerics: Numerics | None) -> tuple[str, str]:
    if numerics is None or (numerics.within is None and not numerics.compared):
        return "unknown", ""
    if numerics.equal:
        return "same", ""
    if numerics.within:
        return "within", ""
    worst = numerics.worst[0] if numerics.worst else None
    if worst is None:
        return "differ", ""
    where = f"{worst.path} of call {worst.call}" if worst.call else worst.path
    return "differ", f"{where}: {worst.note or f'max error {worst.max_abs:.2g}'}"


def _against(record: FixTrial, run: Run, finding: str) -> str:
    """Why a fix is not kept; "" if it is."""
    before, after = record.before, record.after
    assert before is not None
    assert after is not None
    if run.summary.failure is not None:
        return f"it fails: {run.summary.failure.line}"
    if record.results == "differ":
        return f"results differ: {record.differs}"
    if record.results == "unknown":
        return "its results could not be compared"
    if not before.graphs and after.graphs and after.eager <= before.eager:
        return ""  # the function still runs in Python, but what it calls is captured now
    less = (after.failures, after.eager) < (before.failures, before.eager)
    if not less and after.compiles > before.compiles:
        return f"more compiles: {words(record)}"
    figures = [
        (counts.failures, counts.eager, counts.breaks, counts.compiles, counts.graphs)
        for counts in (before, after)
    ]
    if figures[1] >= figures[0]:
        return "it changes nothing" if figures[1] == figures[0] else f"worse: {words(record)}"
    if finding and finding not in record.gone and after.compiles >= before.compiles:
        return "the finding is still there"
    return ""
