"""A stand-in for the worker: it answers commands with records, in the calling thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import structs

from tcw.compiler.protocol.commands import Answer, AnyCommand, Breakpoint, Go, Measure, Rerun, Stop
from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    End,
    Forbidden,
    FrameStart,
    Location,
    Note,
    Progress,
    Refused,
    Resumed,
    Run,
    Settings,
    Source,
    Stage,
    StageStart,
    Start,
    Step,
    Text,
    Timed,
    Waiting,
    WhatIf,
)
from tcw.compiler.trace.writer import text_hash
from tests.block_capture import FILE, LINES, location
from tests.block_trace import block_trace
from tests.decided import asked as asked_decision
from tests.decided import is_test

Respond = Callable[["FakeDriver", AnyCommand], Iterable[AnyRecord]]


class FakeDriver:
    """Writes `opening`, then what `respond` says to each command; remembers the commands."""

    def __init__(self, opening: Iterable[AnyRecord], respond: Respond) -> None:
        self.commands: list[AnyCommand] = []
        self.breakpoints: Sequence[Breakpoint] = ()
        self.joined = threading.Event()
        self.clock = 0.0
        self._opening = list(opening)
        self._respond = respond
        self._on_record: Callable[[AnyRecord], None] = lambda record: None
        self._over = False

    def start(
        self,
        settings: Settings,
        trace: Path | None,
        on_record: Callable[[AnyRecord], None],
        breakpoints: Sequence[Breakpoint],
    ) -> FakeDriver:
        self._on_record = on_record
        self.breakpoints = breakpoints
        self.write(self._opening)
        return self

    def write(self, records: Iterable[AnyRecord]) -> None:
        for record in records:
            self.clock += 0.001
            stamped = structs.replace(record, at=max(self.clock, record.at))
            self.clock = max(self.clock, record.at)
            self._on_record(stamped)

    def send(self, command: AnyCommand) -> None:
        self.commands.append(command)
        if isinstance(command, Stop):
            self.end("interrupted")
        elif not self._over:
            self.write(self._respond(self, command))

    def note(self, note: Note) -> None:
        self.write([note])

    def end(self, status: str = "ok") -> None:
        if not self._over:
            self._over = True
            self.write([End(status=status, seconds=self.clock)])  # type: ignore[arg-type]

    def stop(self) -> None:
        self.end("interrupted")

    def join(self) -> bool:
        self.joined.set()
        return True


def settings_of(**changes: object) -> Settings:
    start = block_trace()[0]
    assert isinstance(start, Start)
    settings: Settings = structs.replace(start.settings, record="steps", **changes)
    return settings


def head() -> list[AnyRecord]:
    """What comes before the first run, and its start."""
    records = block_trace()
    start = records[0]
    assert isinstance(start, Start)
    body = "\n".join(LINES) + "\n"
    return [
        structs.replace(start, settings=settings_of()),
        *records[1:2],
        Text(hash=text_hash(body), body=body),
        Source(file=FILE, text=text_hash(body)),
        Run(number=1, settings=settings_of()),
        waiting("start", "load"),
    ]


def waiting(kind: str, stage: Stage, number: int = 1, **more: object) -> Waiting:
    why = str(more.pop("why", kind))
    return Waiting(number=number, kind=kind, stage=stage, why=why, **more)  # type: ignore[arg-type]


def step(number: int, line: int = 19) -> list[AnyRecord]:
    """One instruction, and the wait at it."""
    place = location(line, 8, 40)
    return [
        Step(
            compile_id="0/0", attempt=0, step=number, depth=0, function="forward",
            location=place, ip=number, opcode="LOAD_FAST", argument="x",
        ),
        waiting("step", "capture", number, compile_id="0/0", location=place, why="step"),
    ]  # fmt: skip


def frame() -> FrameStart:
    place = Location(file=FILE, line=22, end_line=29, function="forward")
    return FrameStart(compile_id="0/0", attempt=0, function="forward", location=place, call=1)


FUSE = "inductor/0/0/forward/fuse/amax+exp"


def asked(**changes: object) -> Decided:
    fields: dict[str, object] = {
        "id": FUSE,
        "graph": "0/0/forward/lowered",
        "kind": "fuse",
        "default": "fuse",
        "choices": ("fuse", "apart"),
        "rule": "shared-data",
        "reason": "B reads what A writes",
        "numbers": {"shared_bytes": 2134016.0},
        "first": ("op9", "op10", "op11"),
        "second": ("op12", "op13"),
        "means": "two loop nests, which may share one C++ function",
        "location": location(19),
    }
    return asked_decision(**{**fields, **changes})


def at_decision(decided: Decided, number: int = 2) -> list[AnyRecord]:
    kind = "decision"
    return [
        decided,
        waiting(
            kind, "fusion", number, compile_id="0/0", graph=decided.graph, decision=decided.id,
            why="first rejected fusion", location=decided.shown.location,
        ),
    ]  # fmt: skip


def compile_records(until: str = "fusion") -> list[AnyRecord]:
    """Those of the block's first compile, up to its scheduler nodes."""
    records = block_trace()
    first = next(i for i, r in enumerate(records) if isinstance(r, FrameStart))
    last = next(i for i, r in enumerate(records) if type(r).__name__ == "FusionRound")
    kept = [r for r in records[first:last] if not is_test(r)]
    return [StageStart(stage="capture", compile_id="0/0"), *kept, StageStart(stage="fusion")]


def compiler(driver: FakeDriver, command: AnyCommand) -> list[AnyRecord]:
    """A compile with a few steps and one decision, that can be run again."""
    state = vars(driver).setdefault("state", {"run": 1, "steps": 0, "open": None})
    if isinstance(command, Go):
        resumed = Resumed(command=command.mode, choice=command.choice, seconds=0.5)
        if command.mode in ("instruction", "over", "out", "line") and state["steps"] < 200:
            state["steps"] += 1
            first = [frame()] if state["steps"] == 1 else []
            return [resumed, *first, *step(state["steps"] - 1, 16 + state["steps"] % 5)]
        if (
            command.mode in ("decision", "fusion", "stage", "graph", "pass")
            and state["open"] is None
        ):
            state["open"] = asked(**state.get("asked", {}))
            return [resumed, *compile_records(), *at_decision(state["open"])]
        return [resumed, *_rest(state)]
    if isinstance(command, Answer):
        one = state["open"]
        forbidden = next((f for f in one.forbidden if f.choice == command.choice), None)
        if forbidden is not None:
            return [
                Refused(
                    id=one.id, choice=command.choice, rule=forbidden.rule, reason=forbidden.reason
                )
            ]
        decided = Decided(
            id=one.id, graph=one.graph, kind=one.kind, default=one.default,
            choice=command.choice or one.default,
            overridden=bool(command.choice) and command.choice != one.default,
        )  # fmt: skip
        return [Resumed(command="answer", choice=command.choice), decided, *_rest(state)]
    if isinstance(command, Rerun):
        before = _rest(state) if not state.get("ended") else []
        state["run"] += 1
        run = Run(
            number=state["run"],
            settings=command.settings,
            because=command.because,
            compared_with=command.compare_with,
        )
        decided = [
            Decided(
                id=id, graph="0/0/forward/lowered", kind="fuse", default="fuse", choice=choice,
                overridden=True,
            )
            for id, choice in command.settings.overrides.items()
        ]  # fmt: skip
        return [*before, run, *compile_records(), *decided, waiting("end", "run", 1)]
    if isinstance(command, Measure):
        timed = Timed(median=1.2e-3, spread=1e-5, runs=50)
        return [WhatIf(base=command.base, run=command.run, scope="call", before=timed, after=timed)]
    return []


def _rest(state: dict[str, object]) -> list[AnyRecord]:
    state["ended"] = True
    return [
        Progress(stage="run", activity="comparing with eager"),
        waiting("end", "run", 9, why="the run is over"),
    ]


def forbidden(rule: str = "domain", reason: str = "4096×128 against 512×256") -> Forbidden:
    return Forbidden(choice="fuse", rule=rule, reason=reason)
