"""The wait of a driven compile: a person may stop at each record and each decision.

`Live.after` receives each record after it is written, and `Live.ask` each decision before it is
answered. Either may block the calling thread, and only that one, until a command lets it continue.
A separate thread reads the commands, so that breakpoints, a pause and the end reach a running
compile. See docs/notes/step.md.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
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
    TimeCalls,
)
from tcw.compiler.protocol.decision import Decision, Detail
from tcw.compiler.protocol.decision_records import open_record
from tcw.compiler.protocol.stops import StopPoint, Stops
from tcw.compiler.trace.records import Location, Record, Refused, Resumed, Waiting, Warned
from tcw.compiler.trace.records.live import WaitingKind

_NOT_WAITING = "not-waiting"
"""Rule of a `Refused` for a decision that is not, or no longer, being asked."""


class Live:
    """A person's control of one recording, over all its runs."""

    def __init__(
        self,
        recorder: Recorder,
        descriptor: int,
        *,
        unread: bytes,
        stop: Callable[[], None],
        gone: Callable[[], None],
    ) -> None:
        """`descriptor` is the command pipe, `unread` the bytes already read from it. `stop` and
        `gone` end the process: on the command `Stop`, and when the front end is gone. Both are
        called on the reading thread."""
        self.recorder = recorder
        self.stops = Stops()
        self.pending: list[Rerun | Measure | TimeCalls] = []
        """Commands to carry out when the run is over."""
        self.waits = 0
        """Number of `Waiting` records of this run so far."""
        self._commands: queue.SimpleQueue[AnyCommand] = queue.SimpleQueue()
        self._descriptor = descriptor
        self._unread = unread
        self._stop = stop
        self._gone = gone
        self._lock = threading.Lock()
        """Guards `stops`: records arrive on any thread, breakpoints on the reader's."""
        self._turn = threading.Lock()
        """Held by the thread that waits."""
        self._hurries = False
        """Run to the end without stopping, because another run was requested."""
        self._process = os.getpid()
        self._safely = Safely(recorder, "a decision's detail")
        self._decode = msgspec.json.Decoder(AnyCommand).decode

    def listen(self) -> None:
        """Start reading commands."""
        threading.Thread(target=self._read, name="tcw commands", daemon=True).start()

    def begins(self, run: Record, until: Breakpoint | None = None) -> None:
        """A run starts, and its `Run` has been written. Continue until a breakpoint or `until`."""
        with self._lock:
            self.stops.after(run)
            self.stops.go("cursor", until)
        self.waits = 0
        self._hurries = False

    def after(self, record: Record) -> None:
        """Wait if the person wants to stop after this record."""
        with self._lock:
            point = self.stops.after(record)
        if point is not None and not self._passes():
            self._stand(point)

    def ask(self, decision: Decision) -> str:
        """The person's choice; "" for the engine's own, or if nobody is asked."""
        if self.recorder.quiet:
            return ""
        with self._lock:
            point = self.stops.decision(decision)
        if point is None or self._passes():
            return ""
        return self._stand(point, decision)

    def wait(self, kind: WaitingKind, why: str) -> Sequence[Rerun | Measure | TimeCalls]:
        """Wait before the first step or after the last. Returns the commands to carry out when the
        run is over, none if the person just continues; at the end of the run they are removed from
        `pending`. Does not wait at an end that already has pending commands."""
        if kind != "end" or not self.pending:
            with self._turn:
                self._until_told(kind, why)
        todo = self.pending
        if kind == "end":
            self.pending = []
        return todo

    def _passes(self) -> bool:
        """Whether nothing stops now: in a hurry, or in a child process that the program forked."""
        return self._hurries or os.getpid() != self._process

    def _stand(self, found: StopPoint, decision: Decision | None = None) -> str:
        if not self._turn.acquire(blocking=False):
            return ""  # another thread waits; this one continues
        try:
            with self.recorder.aside():
                location = self._asked(decision) if decision is not None else None
                return self._until_told(found.kind, found.why, found.breakpoint, decision, location)
        finally:
            self._turn.release()

    def _asked(self, decision: Decision) -> Location | None:
        """Write all details of a decision; returns the line that it concerns."""
        detail = self._safely(decision.detail) if decision.detail is not None else None
        detail = detail or Detail()
        location = self.stops.location(decision)
        if_fused = self.recorder.text(detail.if_fused)
        self.recorder.writer.emit(open_record(decision, detail, if_fused, location))
        return location

    def _until_told(
        self,
        kind: WaitingKind,
        why: str,
        breakpoint: int = 0,
        decision: Decision | None = None,
        location: Location | None = None,
    ) -> str:
        """Wait for a command; returns the person's choice, "" for none."""
        place = self.stops.place
        self.waits += 1
        began = time.perf_counter()  # reading the record is part of the wait
        self.recorder.writer.emit(
            Waiting(
                number=self.waits,
                kind=kind,
                why=why,
                stage=place.stage,
                compile_id=place.compile_id,
                attempt=place.attempt,
                graph=place.graph,
                decision=decision.id if decision is not None else "",
                breakpoint=breakpoint,
                location=location or place.location,
            )
        )
        while True:
            command = self._commands.get()
            choice = getattr(command, "choice", "")
            if not self._takes(command, choice, decision, kind):
                continue
            self.recorder.writer.emit(
                Resumed(
                    command=_word(command),
                    choice=choice,
                    seconds=round(time.perf_counter() - began, 6),
                )
            )
            return choice

    def _takes(
        self, command: AnyCommand, choice: str, decision: Decision | None, kind: WaitingKind
    ) -> bool:
        """Whether a command lets the compile continue."""
        if isinstance(command, Rerun):
            self.pending.append(command)
            self._hurries = True
            return True
        if isinstance(command, (Measure, TimeCalls)):
            self.pending.append(command)
            if kind != "end":
                self.recorder.writer.emit(
                    Warned(message="runs are measured after this one has ended", asked=True)
                )
            return kind == "end"
        if isinstance(command, Answer) and (decision is None or command.id != decision.id):
            reason = "the compile does not wait at this decision"
            self._refuse(command.id, choice, _NOT_WAITING, reason)
            return False
        if isinstance(command, Go | Answer) and kind != "end":
            if choice and decision is not None and (forbidden := _forbidden(decision, choice)):
                self._refuse(decision.id, choice, *forbidden)
                return False
            with self._lock:
                if isinstance(command, Go):
                    self.stops.go(command.mode, command.until)
                else:
                    self.stops.go(self.stops.mode)
            return True
        return False

    def _refuse(self, id: str, choice: str, rule: str, reason: str) -> None:
        self.recorder.writer.emit(Refused(id=id, choice=choice, rule=rule, reason=reason))

    def _read(self) -> None:
        """The reading thread: runs until the pipe ends."""
        data = self._unread
        while True:
            *lines, data = data.split(b"\n")
            for line in lines:
                self._take(line)
            try:
                part = os.read(self._descriptor, 1 << 16)
            except OSError:
                part = b""
            if not part:
                self._gone()
                return
            data += part

    def _take(self, line: bytes) -> None:
        try:
            command = self._decode(line)
        except msgspec.DecodeError as error:
            self.recorder.writer.emit(Warned(message=f"a command was not understood: {error}"))
            return
        if isinstance(command, SetBreakpoints):
            with self._lock:
                self.stops.set_breakpoints(command.breakpoints)
        elif isinstance(command, Pause):
            if not self._turn.locked():
                with self._lock:
                    self.stops.pause()
        elif isinstance(command, Stop):
            self._stop()
        else:
            if isinstance(command, Rerun):
                self._hurries = True
            self._commands.put(command)


def _forbidden(decision: Decision, choice: str) -> tuple[str, str] | None:
    """The (rule, reason) that forbids a choice; None if it is legal."""
    if choice not in decision.choices:
        return "no-such-choice", f"use {' or '.join(decision.choices)}"
    return decision.forbidden.get(choice)


def _word(command: AnyCommand) -> str:
    """`over`, `answer`, `rerun`: the command's name in a trace."""
    if isinstance(command, Go):
        return command.mode
    return str(type(command).__struct_config__.tag)
