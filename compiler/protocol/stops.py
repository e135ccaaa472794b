"""Where to stop: the person's request, matched against records as they are written.

The same state machine serves both: a running compile feeds each record after it is written and each
decision before it is answered; a replay feeds the records of a trace. The same sequence stops at
the same places. Nothing here waits, and nothing needs torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from tcw.compiler.protocol.breakpoint_matching import DECISIONS, Matcher, at_place
from tcw.compiler.protocol.commands import Breakpoint, Mode
from tcw.compiler.protocol.compile_places import CompilePlace, Compiles, Standing
from tcw.compiler.protocol.decision import FUSE, INDUCTOR, Decision, engine_of, matters, split_id
from tcw.compiler.protocol.decision_records import decision_of
from tcw.compiler.protocol.repeated_decisions import RepeatedDecisions
from tcw.compiler.trace.records import (
    CacheLookup,
    CallStart,
    Decided,
    EnginePart,
    FrameEnd,
    FrameStart,
    Graph,
    GraphBreak,
    Location,
    PassChange,
    Recompile,
    Record,
    Run,
    StageStart,
    Step,
)

StopKind = Literal["step", "graph", "pass", "decision", "stage", "event", "breakpoint"]
"""The kind of a stop; each is a `Waiting.kind`."""

WORDS: dict[Mode, str] = {
    "instruction": "step",
    "over": "step over",
    "out": "step out",
    "line": "next line",
    "frame": "next frame",
    "graph": "next graph",
    "pass": "next pass",
    "decision": "next decision",
    "fusion": "next fusion decision",
    "any-decision": "next decision of any kind",
    "stage": "next stage",
    "continue": "continue",
    "cursor": "run to cursor",
}
"""Each mode as text, as in `Waiting.why`."""

ALREADY_FUSED = "already-fused"
"""Rule of a pair whose sides already belong to one group: nothing is decided."""

_PLACES = (Step, FrameStart, Graph, PassChange, StageStart, GraphBreak, Recompile, Decided)
"""Records after which a paused compile stops."""


@dataclass(frozen=True, slots=True)
class StopPoint:
    """A stop, with its reason."""

    kind: StopKind
    why: str
    breakpoint: int = 0
    """Number of the breakpoint; 0 if the mode caused the stop."""


class Stops:
    """Decides where to stop. Initially continues until a breakpoint."""

    def __init__(self, breakpoints: Iterable[Breakpoint] = ()) -> None:
        self.place = CompilePlace()
        """The place of the last record."""
        self.mode: Mode = "continue"
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._until: Breakpoint | None = None
        self._paused = False
        self._spent: set[Breakpoint] = set()
        """Breakpoints with `once` that have stopped the compile."""
        self._armed: tuple[Breakpoint, ...] = ()
        self._from: Standing | None = None
        """The instruction at which the person chose the mode."""
        self._compiles = Compiles()
        self._matcher = Matcher()
        self._announced: set[str] = set()
        """Ids of decisions met before their answer is recorded."""
        self._repeated = RepeatedDecisions()
        self._asked: set[str] = set()
        """Ids of decisions met before their answer, whose test by Inductor is not recorded yet: it
        is recorded once its score or outcome is known."""
        self.set_breakpoints(breakpoints)

    def set_breakpoints(self, breakpoints: Iterable[Breakpoint]) -> None:
        """Replace all breakpoints. A spent `once` breakpoint stays spent."""
        self.breakpoints = tuple(breakpoints)
        self._arm()

    def go(self, mode: Mode, until: Breakpoint | None = None) -> None:
        """Continue from here. Without an `until`, `cursor` means `continue`."""
        self.mode = mode if mode != "cursor" or until is not None else "continue"
        self._until = until if mode == "cursor" else None
        self._paused = False
        self._from = self._compiles.at
        self._arm()

    def pause(self) -> None:
        """Stop at the next place where a compile can stop."""
        self._paused = True

    def after(self, record: Record) -> StopPoint | None:
        """The reason to stop after this record; None to continue."""
        if isinstance(record, Run | EnginePart):
            self._start_over()
            return None
        if isinstance(record, Decided) and record.open:
            return self.decision(decision_of(record))
        entered, ended = self._follow(record)
        if isinstance(record, Decided):
            if self._passes_by(record):
                return None
            stop = self._at_decision(decision_of(record))
        else:
            stop = self._at_breakpoint(record, entered) or self._by_mode(record, ended)
        if stop is None and self._paused and isinstance(record, _PLACES):
            stop = StopPoint(_kind_of(record), "paused")
        return self._stopped(stop)

    def _passes_by(self, record: Decided) -> bool:
        """Whether to pass by a decision: the person was asked already, or nothing is decided."""
        pair = record.pair
        if pair is None or engine_of(record.id) != INDUCTOR:
            asked = record.id in self._announced
            self._announced.discard(record.id)
            return asked
        if pair.within or record.rule == ALREADY_FUSED:
            return True
        if record.id not in self._asked:
            return False
        self._asked.discard(record.id)
        for who in (None, *self._armed):
            self._repeated.news(decision_of(record), who)
        return True

    def decision(self, decision: Decision) -> StopPoint | None:
        """The reason to stop at this decision before it is answered; its `Decided` does not stop
        again.

        The place is that of the decision's graph from here on.
        """
        self._announced.add(decision.id)
        self._asked.add(decision.id)
        self.place.graph, self.place.location = decision.graph, None
        stop = self._at_decision(decision)
        if stop is None and self._paused:
            stop = StopPoint("decision", "paused")
        return self._stopped(stop)

    def location(self, decision: Decision) -> Location | None:
        """The user's line that a decision concerns, as far as it is recorded."""
        return self._matcher.location(decision)

    def _start_over(self) -> None:
        """Another run or engine starts: ids restart at 0, and nothing has been met."""
        self.place = CompilePlace()
        self._compiles = Compiles()
        self._matcher = Matcher()
        self._from = None
        self._announced.clear()
        self._repeated = RepeatedDecisions()
        self._asked.clear()

    def _follow(self, record: Record) -> tuple[bool, Standing | None]:
        """Follow a record. Returns whether Dynamo entered another line, and the instruction where
        the person was in a frame that ends with this record."""
        self.place.see(record)
        self._matcher.learn(record)
        self._repeated.learn(record)
        if isinstance(record, Step):
            return self._compiles.step(record), None
        if isinstance(record, FrameStart):
            self._compiles.starts(record)
        elif isinstance(record, FrameEnd):
            self._compiles.ends(record)
            left = self._from
            if left is not None and left.compile_id == record.compile_id:
                self._from = None
                return False, left
        elif isinstance(record, CallStart):
            self._compiles.forget()
            self._from = None
        return False, None

    def _by_mode(self, record: Record, ended: Standing | None) -> StopPoint | None:
        mode = self.mode
        if isinstance(record, Step):
            stops = self._steps_to() if mode in ("instruction", "over", "out", "line") else ""
            return StopPoint("step", stops) if stops else None
        if mode == "out" and ended is not None:
            return StopPoint("step", f"{WORDS[mode]}: {ended.compile_id} is done")
        if mode == "graph" and isinstance(record, Graph):
            return StopPoint("graph", f"{WORDS[mode]}: {record.id}")
        if mode == "pass" and isinstance(record, PassChange):
            return StopPoint("pass", f"{WORDS[mode]}: {record.name}")
        new_frame = isinstance(record, FrameStart) and record.attempt == 0
        if mode == "frame" and new_frame:
            return StopPoint("step", f"{WORDS[mode]}: {self.place.compile_id}")
        if mode == "stage" and (new_frame or isinstance(record, StageStart)):
            of = self.place.graph or self.place.compile_id
            return StopPoint("stage", f"{WORDS[mode]}: {self.place.stage} of {of}")
        return None

    def _steps_to(self) -> str:
        """Why a stepping mode stops at this instruction; "" to continue."""
        mode, left, here = self.mode, self._from, self._compiles.at
        words = WORDS[mode]
        if mode == "instruction" or left is None or here is None:
            return words
        if here.level > left.level:
            return ""  # a compile started by another compile
        if here.level < left.level:
            return words
        if here.compile_id == left.compile_id and here.attempt != left.attempt:
            if mode == "out" and left.depth == 0:
                self._from = replace(left, attempt=here.attempt)
                return ""
            return f"{words}: attempt {here.attempt + 1} of {here.compile_id} starts over"
        if here.depth != left.depth:
            return words if here.depth < left.depth else ""
        if not here.same_frame(left):
            return ""  # a sibling: generators that one loop draws from
        if mode == "line":
            return words if here.line != left.line else ""
        return words if mode == "over" else ""

    def _at_decision(self, decision: Decision) -> StopPoint | None:
        news = self._repeated.news(decision, None)
        for wanted in self._armed:
            if self._decision_meets(wanted, decision):
                its = self._repeated.news(decision, wanted)
                if its is not None:
                    return self._hit(wanted, "decision", its)
        if news is None:
            return None
        stops = (
            self.mode == "any-decision"
            or (self.mode == "decision" and matters(decision))
            or (self.mode == "fusion" and decision.kind == FUSE)
        )
        why = f"{WORDS[self.mode]}: {decision.kind}"
        return StopPoint("decision", _joined(why, news)) if stops else None

    def _decision_meets(self, wanted: Breakpoint, decision: Decision) -> bool:
        if wanted.stage and wanted.stage != self.place.stage:
            return False
        if wanted.kind == "op" or wanted.kind in DECISIONS:
            return self._matcher.decision(wanted, decision)
        if wanted.kind == "line":
            return self._matcher.line_of_decision(wanted, decision, self.place.stage)
        return False

    def _at_breakpoint(self, record: Record, entered: bool) -> StopPoint | None:
        for wanted in self._armed:
            kind = self._meets(wanted, record, entered)
            if kind:
                return self._hit(wanted, kind)
        return None

    def _meets(self, wanted: Breakpoint, record: Record, entered: bool) -> StopKind | None:
        stage = self.place.stage
        if wanted.stage and wanted.stage != stage:
            return None
        match wanted.kind:
            case "line":
                met = bool(wanted.line) and self._matcher.line(wanted, record, stage, entered)
                return "breakpoint" if met else None
            case "op":
                met = bool(wanted.op) and self._matcher.operation(wanted, record, stage)
                return "breakpoint" if met else None
            case "stage":
                starts = isinstance(record, StageStart) or (
                    isinstance(record, FrameStart) and record.attempt == 0
                )
                return "stage" if starts else None
            case "break":
                met = isinstance(record, GraphBreak) and at_place(wanted, record.location)
                return "event" if met else None
            case "recompile":
                met = isinstance(record, Recompile) and at_place(wanted, record.location)
                return "event" if met else None
            case "miss":
                met = isinstance(record, CacheLookup) and record.verdict == "miss"
                return "event" if met else None
        return None

    def _hit(self, wanted: Breakpoint, kind: StopKind, news: str = "") -> StopPoint:
        if wanted is self._until:
            return StopPoint(kind, WORDS["cursor"])
        if wanted.once:
            self._spent.add(wanted)
        why = f"breakpoint {wanted.number}: {in_words(wanted)}"
        return StopPoint(kind, _joined(why, news), wanted.number)

    def _stopped(self, stop: StopPoint | None) -> StopPoint | None:
        if stop is not None:
            self._paused = False
            self._until = None
            self._arm()
        return stop

    def _arm(self) -> None:
        self._armed = tuple(
            wanted
            for wanted in (*((self._until,) if self._until else ()), *self.breakpoints)
            if wanted.enabled and wanted not in self._spent
        )


def _joined(why: str, news: str) -> str:
    return f"{why}; {news}" if news else why


def in_words(wanted: Breakpoint) -> str:
    """A breakpoint as listed: `model.py:19`, `op softmax`, `first rejected fusion`."""
    words = _words_of_kind(wanted)
    if wanted.rule:
        words += f", rule {wanted.rule}"
    name = wanted.number_name or "a number"
    if wanted.at_least is not None:
        words += f", {name} ≥ {wanted.at_least:g}"
    if wanted.at_most is not None:
        words += f", {name} ≤ {wanted.at_most:g}"
    return words


def _words_of_kind(wanted: Breakpoint) -> str:
    match wanted.kind:
        case "line":
            return f"{os.path.basename(wanted.file)}:{wanted.line}"
        case "op":
            return f"op {wanted.op}"
        case "stage":
            return f"stage {wanted.stage}"
        case "decision" if wanted.id:
            _, kind, names = split_id(wanted.id)
            return f"decision {kind} {' + '.join(names)}"
        case "decision":
            return f"decision {wanted.decision}".rstrip()
        case "rejection":
            return "first rejected fusion" if wanted.once else "rejected fusion"
        case "break":
            return "graph break"
        case "recompile":
            return "recompile"
        case "miss":
            return "cache miss"


def _kind_of(record: Record) -> StopKind:
    if isinstance(record, Graph):
        return "graph"
    if isinstance(record, PassChange):
        return "pass"
    if isinstance(record, StageStart):
        return "stage"
    if isinstance(record, GraphBreak | Recompile):
        return "event"
    if isinstance(record, Decided):
        return "decision"
    return "step"
