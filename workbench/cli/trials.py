"""Tries a profile's suggestions: each against the base in one process, then those that helped.

A driven worker keeps both runs in memory, so whole calls alternate. If the source changes, the
worker runs a copy of it. A suggestion that needs a person is reported, not tried.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from msgspec import structs

from tcw.compiler.protocol.commands import Measure, Rerun, TimeCalls
from tcw.compiler.protocol.decision import engine_of
from tcw.compiler.trace.records import (
    AnyRecord,
    CallEnd,
    CallTimes,
    Decided,
    End,
    Engine,
    EnginePart,
    Failure,
    GraphBreak,
    Record,
    Settings,
    Trial,
    Waiting,
    Warned,
    WhatIf,
)
from tcw.viewers.command_line import command_line
from tcw.viewers.recording import Recording
from tcw.viewers.summary.numerics import not_comparable, rejected_words
from tcw.viewers.summary.profile import profiles_of
from tcw.viewers.summary.profile.causes.cause import TOGETHER, Suggestion, best_of_groups
from tcw.workbench.cli.edits import source_diff
from tcw.workbench.request.options import changed_by

if TYPE_CHECKING:
    from tcw.workbench.worker.client import Driver
    from tcw.workbench.worker.trace_file import OnRecord

PATIENCE = 900.0
"""Timeout of one compile or one comparison, seconds."""


Found = TypeVar("Found", CallTimes, WhatIf)
Start: TypeAlias = "Callable[[Settings, OnRecord, Rerun], Driver]"
"""Starts a driver whose first run is the given `Rerun`."""


class Gone(Exception):
    """The worker ended or took too long; the message says which."""


@dataclass
class Ran:
    """A finished run."""

    number: int
    compiles: int = 0
    """Graphs compiled during its calls."""
    breaks: int = 0
    """Graph breaks hit while compiling them."""
    refused: str = ""
    failed: str = ""


def trials(
    settings: Settings,
    suggestions: Sequence[Suggestion],
    *,
    see: OnRecord = lambda _: None,
    start: Start | None = None,
) -> Iterator[Trial]:
    """A trial of each suggestion, as soon as it is measured. If several helped, the last trial
    combines them (`TOGETHER`); if that is kept, its command has the options of all of them.

    A change is kept if it is faster beyond the noise, or compiles less and is not slower, with
    results that are not wrong (`WhatIf.within`). `see` receives all records, for progress. Ctrl-C
    ends it.
    """
    engine = "inductor" if settings.engine == "both" else settings.engine
    given = structs.replace(settings, engine=engine)
    base = structs.replace(given, profile=False, verify=False, until="run")
    bench = TrialWorker(base, given, see, start or started_by())
    made: list[tuple[Suggestion, Trial]] = []
    try:
        for suggestion in suggestions:
            trial = _trial(bench, suggestion)
            made.append((suggestion, trial))
            yield trial
        together = _together(base, made)
        if together is not None:
            yield _trial(bench, together, least=min(one.difference for _, one in made if one.kept))
    except KeyboardInterrupt:
        return
    finally:
        bench.close()


def tried(settings: Settings, recording: Recording, see: OnRecord) -> Iterator[Record]:
    """Trials of what the profiles in a recording suggest. With two engines, each engine's follow
    its `EnginePart`."""
    profiles = profiles_of(recording)
    for profile in profiles:
        if len(profiles) > 1:
            yield EnginePart(engine=cast(Engine, profile.engine))
        of_engine = structs.replace(settings, engine=profile.engine or settings.engine)
        yield from trials(of_engine, profile.suggestions, see=see)


def _together(base: Settings, made: Sequence[tuple[Suggestion, Trial]]) -> Suggestion | None:
    """The kept changes that do not contradict each other, one per group, best first, without those
    that another one includes. None if there are fewer than two."""
    suggested = {trial.id: suggestion for suggestion, trial in made}
    chosen: list[Suggestion] = []
    settings = base
    for trial in best_of_groups([trial for _, trial in made]):
        suggestion = suggested[trial.id]
        changed = changed_by(settings, suggestion.options)
        if not changed.reason and not _contradicts(base, settings, changed.settings):
            chosen.append(suggestion)
            settings = changed.settings
    unlike = {frozenset(_items(suggestion.options)): suggestion for suggestion in reversed(chosen)}
    within = {items for items in unlike if any(items < others for others in unlike)}
    chosen = [suggestion for items, suggestion in reversed(unlike.items()) if items not in within]
    if len(chosen) < 2:
        return None
    every = dict.fromkeys(item for suggestion in chosen for item in _items(suggestion.options))
    return Suggestion(
        TOGETHER,
        "together: " + ", ".join(suggestion.words for suggestion in chosen),
        tuple(option for item in every for option in item),
    )


def _items(options: Sequence[str]) -> list[tuple[str, ...]]:
    """`--set X --dynamic` -> (`--set`, `X`), (`--dynamic`,)."""
    found: list[tuple[str, ...]] = []
    for option in options:
        if option.startswith("--") or not found:
            found.append((option,))
        else:
            found[-1] += (option,)
    return found


def _contradicts(base: Settings, before: Settings, after: Settings) -> bool:
    """Whether a further change undoes a chosen one, or concerns an engine that is not used."""
    for name in ("engine", "mode", "dynamic", "grad"):
        chosen = getattr(before, name)
        if chosen not in (getattr(base, name), getattr(after, name)):
            return True
    if after.engine == "tcw" and after.mode != base.mode:
        return True
    if after.dynamic and after.dynamic != base.dynamic and after.mark_dynamic != base.mark_dynamic:
        return True
    if source_diff(base, after).reason:
        return True
    new = {id: choice for id, choice in after.overrides.items() if id not in base.overrides}
    return any(engine_of(id) != after.engine for id in new) or any(
        after.overrides[id] != choice for id, choice in before.overrides.items()
    )


def _trial(bench: TrialWorker, suggestion: Suggestion, least: float | None = None) -> Trial:
    """Try one. `least`: the difference it has to beat, in (negative) seconds."""
    unmeasured = Trial(
        id=suggestion.id,
        words=suggestion.words,
        options=tuple(suggestion.options),
        group=suggestion.group,
    )
    if not suggestion.options:
        return structs.replace(unmeasured, reason="the source has to be changed by hand")
    change = changed_by(bench.base, suggestion.options)
    difference = source_diff(bench.base, change.settings)
    if change.reason or difference.reason:
        return structs.replace(unmeasured, reason=change.reason or difference.reason)
    unmeasured = structs.replace(unmeasured, diff=difference.text)
    if change.settings == bench.base:
        return structs.replace(unmeasured, reason="the profile already has it")
    try:
        ran, what_if = bench.against_base(change.settings)
    except Gone as gone:
        return structs.replace(unmeasured, reason=str(gone))
    if what_if is None or what_if.before is None:
        reason = ran.failed or (what_if.reason if what_if is not None else "it was not measured")
        return structs.replace(unmeasured, reason=reason)
    words = unmeasured.words
    fewer = ran.compiles < bench.compiles
    counts = (
        (what, before, after)
        for what, before, after in (
            ("compiles", bench.compiles, ran.compiles),
            ("breaks", bench.breaks, ran.breaks),
        )
        if before != after
    )
    if said := ", ".join(f"{what} {before} → {after}" for what, before, after in counts):
        words += f" (in these calls: {said})"
    measured = structs.replace(
        unmeasured,
        words=words,
        before=what_if.before,
        after=what_if.after,
        difference=what_if.difference,
        noise=what_if.noise,
        equal=what_if.within,
    )
    reason = _against(what_if, fewer, ran.refused, least)
    command = "" if reason else asks_for(bench.given, suggestion.options)
    return structs.replace(measured, kept=not reason, reason=reason, command=command)


def _against(found: WhatIf, fewer: bool, refused: str, least: float | None) -> str:
    """Why a change is not kept; "" if it is."""
    if refused:
        return f"the override is refused: {refused}"
    if found.within is None:
        return not_comparable(found) or "its results cannot be compared with the base's"
    if not found.within:
        return f"its results differ from the base's: {rejected_words(found)}"
    if found.difference > found.noise:
        return "slower"
    if found.difference < -found.noise:
        if least is not None and found.difference > least + found.noise:
            return "no faster than the best single change"
        return ""
    return "" if fewer else "within the noise"


class TrialWorker:
    """A driven worker with the base compiled; restarted if the last one is gone."""

    def __init__(self, base: Settings, given: Settings, see: OnRecord, start: Start) -> None:
        self.base = base
        self.given = given
        """The profile's settings."""
        self.compiles = 0
        """In the calls of the base."""
        self.breaks = 0
        self._see = see
        self._start = start
        self._driver: Driver | None = None
        self._records: queue.SimpleQueue[AnyRecord] = queue.SimpleQueue()
        self._run = 1

    def against_base(self, settings: Settings) -> tuple[Ran, WhatIf | None]:
        """Compile with these settings and time whole calls of both. Raises `Gone` on failure."""
        self._ready()
        assert self._driver is not None
        self._run += 1
        self._driver.send(Rerun(settings=settings, because="a suggestion", measure=False))
        ran = self._until_end(self._run)
        if ran.failed:
            return ran, None
        self._driver.send(Measure(base=1, run=ran.number, scope="call"))
        return ran, self._last(WhatIf)

    def turn(self, rounds: int) -> CallTimes:
        """Time this many calls of the base, which is compiled if it is not yet. Raises `Gone`."""
        self._ready()
        assert self._driver is not None
        self._driver.send(TimeCalls(run=1, rounds=rounds))
        times = self._last(CallTimes)
        if times is None:
            raise Gone("nothing was timed")
        return times

    def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.stop()
            driver.join(30.0)

    def _ready(self) -> None:
        if self._driver is not None:
            return
        self._records = queue.SimpleQueue()
        self._run = 1
        self._driver = self._start(
            self.base, self._records.put, Rerun(settings=self.base, because="the base")
        )
        ran = self._until_end(1)
        if ran.failed:
            self.close()
            raise Gone(f"the base could not be compiled again: {ran.failed}")
        self.compiles, self.breaks = ran.compiles, ran.breaks

    def _next(self, deadline: float) -> AnyRecord:
        try:
            record = self._records.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            self.close()
            raise Gone(f"not done after {PATIENCE:.0f} s") from None
        self._see(record)
        if isinstance(record, End):
            self.close()
            raise Gone(" ".join(filter(None, ("the worker ended:", record.status, record.reason))))
        return record

    def _until_waiting(self) -> Iterator[AnyRecord]:
        """The records until the worker waits for the next command, that `Waiting` last."""
        deadline = time.monotonic() + PATIENCE
        while True:
            record = self._next(deadline)
            yield record
            if isinstance(record, Waiting) and record.kind == "end":
                return

    def _until_end(self, number: int) -> Ran:
        """What became of a run. Raises `Gone` if the worker cannot go on after it."""
        ran = Ran(number)
        for record in self._until_waiting():
            if isinstance(record, Failure):
                ran.failed = record.line
            elif isinstance(record, CallEnd):
                ran.compiles += len(record.compiled)
            elif isinstance(record, GraphBreak):
                ran.breaks += 1
            elif isinstance(record, Decided) and record.refused:
                ran.refused = record.refused
            elif isinstance(record, Warned) and record.code == "override unknown":
                ran.refused = record.message
            elif isinstance(record, Waiting) and record.kind == "end" and record.lost:
                self.close()
                raise Gone(ran.failed or record.why)
        return ran

    def _last(self, kind: type[Found]) -> Found | None:
        """The last record of a kind that a measurement leaves."""
        kinds = [record for record in self._until_waiting() if isinstance(record, kind)]
        return kinds[-1] if kinds else None


def started_by(python: str = "") -> Start:
    """Starts workers with an interpreter; "" for this one."""
    from tcw.workbench.worker.client import Driver

    return lambda settings, on_record, first: Driver(
        settings, None, on_record, first=first, python=python
    )


def asks_for(settings: Settings, options: Sequence[str] = ()) -> str:
    """The `tcw profile …` command of this profile with further options, quoted for a shell."""
    return command_line("profile", changed_by(settings, options).settings)
