"""The ways to run a model, each recorded in its own process: cost, speed, break-even."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Engine,
    Failure,
    Kernel,
    ModeRow,
    Settings,
    Speed,
    Timed,
    Warned,
)
from tcw.viewers.recording import Recording
from tcw.viewers.words import plural
from tcw.workbench.worker.trace_file import OnRecord


@dataclass(frozen=True)
class Way:
    """An engine and a mode of torch.compile."""

    engine: Engine
    mode: str = ""

    @property
    def name(self) -> str:
        return f"{self.engine} {self.mode}".strip()


WAYS = (
    Way("inductor"),
    Way("inductor", "reduce-overhead"),
    Way("inductor", "max-autotune"),
    Way("tcw"),
    Way("tcw", "reduce-overhead"),
)
"""In the order of the table; the first is recorded first and the others are compared with it."""


def modes(
    settings: Settings,
    *,
    see: OnRecord = lambda _: None,
    ways: Iterable[Way] = WAYS,
    record: Callable[..., End] | None = None,
) -> Iterator[ModeRow]:
    """A row for eager and one for each way, as soon as it is measured. Eager's figures come from
    the rounds of the first way that has any.

    Each way is recorded from empty caches, with the other settings as given. `see` receives all
    records of all workers, to show progress. Ends when the user interrupts.
    `record`: `tcw.workbench.worker.client.record`, or one like it.
    """
    make = record or _record()
    base: Recording | None = None
    with_eager = False
    for way in ways:
        device = _device(base)
        if way.mode == "reduce-overhead" and device == "cpu":
            reason = "it only adds CUDA graphs, and the model runs on the CPU"
            yield ModeRow(name=way.name, engine=way.engine, mode=way.mode, reason=reason)
            continue
        recording = Recording()

        def take(record: AnyRecord, recording: Recording = recording) -> None:
            recording.feed([record])
            see(record)

        end = make(_settings(settings, way), trace=None, on_record=take)
        if end.status == "interrupted":
            return
        row = row_of(way, recording, end, base)
        if row.eager is not None and not with_eager:
            with_eager = True
            yield _eager(recording, row.eager)
        yield row
        base = base or recording


def _record() -> Callable[..., End]:
    from tcw.workbench.worker.client import record

    return record


def _settings(settings: Settings, way: Way) -> Settings:
    return structs.replace(
        settings,
        engine=way.engine,
        mode=way.mode,
        until="run",
        record="default",
        cached=False,
        profile=False,
        verify=False,
        memory=True,
    )


def row_of(way: Way, recording: Recording, end: End, base: Recording | None) -> ModeRow:
    """The row of one recording; `base` is the recording of the default mode."""
    speed = recording.last(Speed)
    again = speed.compiled_again if speed is not None else 0
    own = next((warned for warned in recording.all(Warned) if warned.code == "own options"), None)
    if speed is None or again or (way.mode and own is not None):
        said = own.message if own is not None and speed is not None else ""
        if again:
            said = (
                f"{plural(again, 'graph')} compiled while it was timed: the times include compiling"
            )
        reason = said or why_not(recording, end)
        return ModeRow(name=way.name, engine=way.engine, mode=way.mode, reason=reason)
    tuned = way.mode.startswith("max-autotune")
    same = tuned and base is not None and _code(recording) == _code(base)
    return ModeRow(
        name=way.name,
        engine=way.engine,
        mode=way.mode,
        eager=_timed(speed.eager_ms, speed.eager_mad_ms, speed.pairs),
        time=_timed(speed.compiled_ms, speed.compiled_mad_ms, speed.pairs),
        speedup=speed.speedup,
        noise=speed.noise,
        compile_seconds=speed.compile_seconds,
        compile_cpu_seconds=speed.compile_cpu_seconds,
        peak_bytes=speed.compiled_peak_bytes,
        pays_after=pays_after(speed),
        note="no template was chosen: same code as the default mode" if same else "",
    )


def pays_after(speed: Speed) -> int | None:
    """Calls until the compile time has paid off; None if compiled calls are not faster."""
    won = (speed.eager_ms - speed.compiled_ms) / 1e3
    if speed.in_noise or speed.speedup <= 1 or won <= 0:
        return None
    return max(1, math.ceil(speed.compile_seconds / won))


def why_not(recording: Recording, end: End) -> str:
    """Why a recording has no speed, in one line."""
    failure: Failure | None = recording.failure
    if failure is not None:
        return failure.line
    for warned in recording.all(Warned):
        if warned.code == "not timed":
            return warned.message
    if end.status != "ok":
        return " ".join(filter(None, (end.status, end.reason)))
    return "not timed: a script runs unchanged"


def _eager(recording: Recording, time: Timed) -> ModeRow:
    speed = recording.last(Speed)
    peak = speed.eager_peak_bytes if speed is not None else None
    return ModeRow(name="eager", eager=time, time=time, peak_bytes=peak)


def _timed(median_ms: float, mad_ms: float, runs: int) -> Timed:
    spread = max(3 * mad_ms, 0.01 * median_ms)
    return Timed(median=median_ms / 1e3, spread=spread / 1e3, runs=runs)


def _device(recording: Recording | None) -> str:
    speed = recording.last(Speed) if recording is not None else None
    return speed.device if speed is not None else ""


def _code(recording: Recording) -> list[tuple[str, str]]:
    """Each kernel's graph and text, in order."""
    return [(kernel.graph, kernel.text) for kernel in recording.all(Kernel)]
