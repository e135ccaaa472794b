"""The wait: commands over a pipe, records in a list; no torch, no worker."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import pytest

from tcw.compiler.control.gate import Gate
from tcw.compiler.control.live import Live
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.protocol.commands import (
    Answer,
    AnyCommand,
    Breakpoint,
    Go,
    Measure,
    Pause,
    Rerun,
    SetBreakpoints,
    Stop,
)
from tcw.compiler.protocol.decision import Decision, Detail
from tcw.compiler.trace.records import (
    AnyRecord,
    Graph,
    Location,
    Node,
    Record,
    Refused,
    Resumed,
    Run,
    Settings,
    Step,
    Text,
    Waiting,
    Warned,
)
from tcw.compiler.trace.writer import TraceWriter
from tests.decided import asked_in

R = TypeVar("R", bound=Record)
SETTINGS = Settings(file="/model.py", record="steps")
SECONDS = 120


class Bench:
    """A recorder with a person at it."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.came = threading.Condition()
        decode = msgspec.json.Decoder(AnyRecord).decode

        def sink(line: bytes) -> None:
            with self.came:
                self.records.append(decode(line))
                self.came.notify_all()

        self.recorder = Recorder(TraceWriter(sink), SETTINGS)
        read, self.pipe = os.pipe()
        self.stopped = threading.Event()
        self.gone = threading.Event()
        self.live = Live(self.recorder, read, unread=b"", stop=self.stopped.set, gone=self.gone.set)
        self.live.listen()
        self.live.begins(Run(number=1, settings=SETTINGS))
        self.recorder.live = self.live.after

    def send(self, command: AnyCommand) -> None:
        os.write(self.pipe, msgspec.json.encode(command) + b"\n")

    def all(self, kind: type[R]) -> list[R]:
        return [record for record in self.records if isinstance(record, kind)]

    def wait_for(self, kind: type[R], count: int = 1) -> R:
        """The record of this kind that is the `count`th."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.all(kind)) >= count, SECONDS), self.records
        return self.all(kind)[count - 1]

    def close(self) -> None:
        os.close(self.pipe)
        assert self.gone.wait(SECONDS)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def step(line: int = 1) -> Step:
    return Step(
        compile_id="0/0", attempt=0, step=0, depth=0, function="f",
        location=Location(file="/model.py", line=line), ip=0, opcode="NOP",
    )  # fmt: skip


def compiling(bench: Bench, *actions: object) -> threading.Thread:
    """A compile on a thread of its own: records are emitted, functions called."""

    def work() -> None:
        for action in actions:
            if isinstance(action, Record):
                bench.recorder.emit(action)
            else:
                assert callable(action)
                action()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ended(thread: threading.Thread) -> bool:
    thread.join(SECONDS)
    return not thread.is_alive()


def fuse(detail: Detail | None = None, forbidden: bool = False) -> Decision:
    return Decision(
        graph="0/0/forward", kind="fuse", names=("exp", "sum"), default="apart",
        choices=("fuse", "apart"), rule="domain", numbers={"saved_bytes": 8},
        forbidden={"fuse": ("cycle", "it would read itself")} if forbidden else {},
        detail=None if detail is None else lambda: detail,
    )  # fmt: skip


def test_it_waits_at_each_step_until_it_is_told_to_go_on(bench: Bench) -> None:
    compile = compiling(bench, lambda: bench.live.wait("start", "before"), step(1), step(2))
    assert bench.wait_for(Waiting).kind == "start"
    bench.send(Go(mode="instruction"))
    first = bench.wait_for(Waiting, 2)
    assert (first.number, first.kind, first.stage) == (2, "step", "capture")
    assert first.location == Location(file="/model.py", line=1)
    time.sleep(0.1)
    assert compile.is_alive()
    bench.send(Go(mode="continue"))
    assert ended(compile)
    assert [resumed.command for resumed in bench.all(Resumed)] == ["instruction", "continue"]
    assert bench.all(Resumed)[1].seconds >= 0.1


def test_the_time_that_it_waits_is_taken_off(bench: Bench) -> None:
    bench.send(Pause())
    began = time.perf_counter()
    while not bench.live.stops._paused:
        time.sleep(0.001)
    compile = compiling(bench, step())
    bench.wait_for(Waiting)
    time.sleep(0.2)
    bench.send(Go(mode="continue"))
    assert ended(compile)
    waited = bench.all(Resumed)[0].seconds
    assert waited <= bench.recorder.aside_seconds <= time.perf_counter() - began
    assert waited >= 0.2


def test_only_the_thread_that_asks_is_blocked_and_no_quiet_one(bench: Bench) -> None:
    bench.send(SetBreakpoints(breakpoints=(Breakpoint(number=1, kind="line", line=1),)))
    compile = compiling(bench, lambda: bench.live.wait("start", ""), step(1))
    bench.send(Go(mode="continue"))
    bench.wait_for(Waiting, 2)
    other = compiling(bench, step(2), step(1), step(2), step(1))
    assert ended(other)
    assert compile.is_alive()
    bench.send(Go(mode="continue"))
    assert ended(compile)
    bench.recorder.quiet = True
    quiet = compiling(bench, step(2), step(1), lambda: bench.live.ask(fuse()))
    assert ended(quiet)
    assert len(bench.all(Waiting)) == 2


def test_a_decision_is_shown_with_all_there_is_to_know_and_answered(bench: Bench) -> None:
    node = Node(
        name="exp", op="call_function", target="", location=Location(file="/model.py", line=7)
    )
    detail = Detail(first=("op1",), origins=("exp",), if_fused="for p0 in 8:", means="two nests")
    gate = Gate(ask=bench.live.ask)
    chosen: list[str] = []
    compile = compiling(
        bench,
        lambda: bench.live.wait("start", ""),
        Graph(id="0/0/forward", kind="forward", compile_id="0/0", nodes=(node,)),
        lambda: chosen.append(gate.decide(fuse(detail))),
    )
    bench.send(Go(mode="decision"))
    waiting = bench.wait_for(Waiting, 2)
    asked = asked_in(bench)[0]
    assert waiting.decision == asked.id == fuse().id
    assert (asked.default, asked.choices, asked.rule) == ("apart", ("fuse", "apart"), "domain")
    shown = asked.shown
    assert (shown.first, shown.origins, shown.means) == (("op1",), ("exp",), "two nests")
    assert asked.numbers == {"saved_bytes": 8}
    assert shown.location == waiting.location == node.location
    text = {one.hash: one.body for one in bench.all(Text)}
    assert text[shown.if_fused] == "for p0 in 8:"
    bench.send(Answer(id=asked.id, choice="fuse"))
    assert ended(compile)
    assert chosen == ["fuse"]
    assert gate.overrides == {asked.id: "fuse"}
    assert bench.all(Resumed)[-1].choice == "fuse"


def test_a_forbidden_answer_is_refused_and_it_keeps_waiting(bench: Bench) -> None:
    chosen: list[str] = []
    compile = compiling(
        bench,
        lambda: bench.live.wait("start", ""),
        lambda: chosen.append(bench.live.ask(fuse(forbidden=True))),
    )
    bench.send(Go(mode="decision"))
    waiting = bench.wait_for(Waiting, 2)
    bench.send(Answer(id=waiting.decision, choice="fuse"))
    refused = bench.wait_for(Refused)
    assert (refused.choice, refused.rule) == ("fuse", "cycle")
    bench.send(Go(mode="continue", choice="welded"))
    assert bench.wait_for(Refused, 2).rule == "no-such-choice"
    bench.send(Answer(id="tcw/other", choice="fuse"))
    assert bench.wait_for(Refused, 3).rule == "not-waiting"
    assert compile.is_alive()
    assert len(bench.all(Waiting)) == 2
    bench.send(Go(mode="continue"))
    assert ended(compile)
    assert chosen == [""]


def test_an_error_in_the_detail_costs_the_detail(bench: Bench) -> None:
    def broken() -> Detail:
        raise ValueError("no nest")

    decision = Decision(
        graph="0/0/forward", kind="fuse", names=("a", "b"), default="fuse",
        choices=("fuse", "apart"), detail=broken,
    )  # fmt: skip
    compile = compiling(
        bench, lambda: bench.live.wait("start", ""), lambda: bench.live.ask(decision)
    )
    bench.send(Go(mode="decision"))
    bench.wait_for(Waiting, 2)
    assert asked_in(bench)[0].shown.origins == ()
    assert "no nest" in bench.all(Warned)[0].message
    bench.send(Go(mode="continue"))
    assert ended(compile)


def test_a_rerun_sends_a_running_compile_to_its_end(bench: Bench) -> None:
    todo: list[object] = []
    compile = compiling(
        bench,
        lambda: bench.live.wait("start", ""),
        *(step(line) for line in range(20)),
        lambda: bench.live.ask(fuse()),
        lambda: todo.extend(bench.live.wait("end", "the run is over")),
    )
    bench.send(Go(mode="instruction"))
    bench.wait_for(Waiting, 2)
    again = Rerun(settings=SETTINGS, because="veto")
    bench.send(again)
    assert ended(compile)
    assert todo == [again]
    assert len(bench.all(Waiting)) == 2


def test_a_rerun_before_the_first_step_is_not_lost(bench: Bench) -> None:
    todo: list[object] = []
    compile = compiling(
        bench,
        lambda: todo.extend(bench.live.wait("start", "")),
        lambda: todo.extend(bench.live.wait("end", "")),
    )
    bench.wait_for(Waiting)
    again = Rerun(settings=SETTINGS)
    bench.send(again)
    assert ended(compile)
    assert todo == [again, again]


def test_at_the_end_it_stays_until_there_is_something_to_do(bench: Bench) -> None:
    todo: list[object] = []
    compile = compiling(bench, lambda: todo.extend(bench.live.wait("end", "the run is over")))
    bench.wait_for(Waiting)
    bench.send(Go(mode="instruction"))
    time.sleep(0.05)
    assert compile.is_alive()
    bench.send(Measure(base=1, run=2))
    assert ended(compile)
    assert todo == [Measure(base=1, run=2)]


def test_the_end_reaches_a_compile_that_runs_and_one_that_waits(bench: Bench) -> None:
    bench.send(Stop())
    assert bench.stopped.wait(SECONDS)


def test_a_command_that_nobody_knows_is_said(bench: Bench) -> None:
    os.write(bench.pipe, b'{"command":"fly"}\n')
    assert "not understood" in bench.wait_for(Warned).message
