"""The verdict in one line: faster, slower, neither, or failed; and what was being done last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tcw.compiler.trace.records import (
    CallStart,
    EngineSpeed,
    Failure,
    Output,
    Progress,
    Speed,
    Stage,
    StageStart,
    Waiting,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.caches import Served, served_from_caches
from tcw.viewers.words import (
    NOT_IN_LOG,
    NOT_MEASURED,
    milliseconds_text,
    percent,
    plural,
    ratio_text,
    seconds_text,
)

Tone = Literal["won", "lost", "neutral", "failed"]


@dataclass(frozen=True)
class VerdictDetail:
    """What is behind a verdict, in phrases."""

    sides: tuple[str, ...] = ()
    """`eager 6.55 ms`, `compiled 6.16 ms`; empty if they were not timed."""
    more: tuple[str, ...] = ()
    """`1.06x ±24% (60 pairs)`."""

    @property
    def text(self) -> str:
        """`eager 6.55 ms, compiled 6.16 ms, 1.06x ±24% (60 pairs)`."""
        return ", ".join((*self.sides, *self.more))


@dataclass(frozen=True)
class Verdict:
    headline: str
    """`No measurable speed-up`, `1.40x faster`, …"""
    detail: VerdictDetail
    """The numbers behind it."""
    tone: Tone

    @property
    def text(self) -> str:
        detail = self.detail.text
        return f"{self.headline}: {detail}" if detail else self.headline


def verdict_of(recording: Recording, graphs: int) -> Verdict:
    """`graphs`: distinct frames that captured a graph."""
    failure, end = recording.failure, recording.end
    if failure is not None:
        return Verdict(f"failed {during(failure.doing)}", VerdictDetail(), "failed")
    status = end.status if end else "incomplete"
    if end is not None and status not in ("ok", "exited", "incomplete"):
        words = {
            "timeout": f"timed out after {seconds_text(end.seconds)}",
            "crashed": "crashed",
            "interrupted": f"interrupted after {seconds_text(end.seconds)}",
            "failed": "failed",
        }[status]
        return Verdict(words, _words(end.reason), "failed")
    if recording.speed is not None:
        return _speed(recording.speed, served_from_caches(recording))
    last = recording.last(Waiting)
    if end is None and (last is None or last.kind != "end"):
        so_far = _words("what was written so far follows")
        words = "Still recording" + (", or cut off" if recording.file is not None else "")
        return Verdict(words, so_far, "neutral")
    if not graphs:
        return Verdict("Nothing was compiled", _words("torch.compile captured no graph"), "lost")
    settings = recording.settings
    until = settings.until if settings else "run"
    if until != "run":
        return Verdict(f"Recorded until {until}", _words(f"speed {NOT_MEASURED}"), "neutral")
    if recording.lacking and end is not None and status == "incomplete":
        return Verdict("Read from a log that is cut off", _words(end.reason), "neutral")
    if recording.lacking:
        return Verdict("Read from a log", _words(f"speed {NOT_IN_LOG}"), "neutral")
    if settings is not None and settings.program:
        return Verdict("Ran as it is", _words(f"speed {NOT_MEASURED}"), "neutral")
    if not recording.all(CallStart):
        why = "the file calls torch.compile itself; define `model` and `example_inputs` to time it"
        return Verdict(f"Speed {NOT_MEASURED}", _words(why), "neutral")
    return Verdict(f"Speed {NOT_MEASURED}", VerdictDetail(), "neutral")


RECOMPILED = "Recompiled during timing"
MACHINE_BUSY = f"Speed {NOT_MEASURED}: the machine is busy"
USELESS = 0.5
"""Noise, as a share of the ratio, from which the ratio itself says little."""


def factor_text(speedup: float, noise: float) -> str:
    """How many times faster or slower, given that it is beyond the noise: `1.40x`. If the noise is
    large, the factor that is certain: `at least 1.20x`."""
    faster = speedup >= 1
    certain = speedup * (1 - noise if faster else 1 + noise)
    factor = speedup if noise < USELESS else certain
    words = ratio_text(factor if faster else 1 / factor if factor > 0 else None)
    return words if noise < USELESS else f"at least {words}"


def ratio_known(speedup: float, noise: float) -> str:
    """`0.84x`; with large noise what is certain of it: `under 0.93x`, `over 1.20x`."""
    if noise < USELESS:
        return ratio_text(speedup)
    certain = ratio_text(speedup * (1 - noise if speedup >= 1 else 1 + noise))
    return f"{'over' if speedup >= 1 else 'under'} {certain}"


def during(doing: str) -> str:
    """`in call 1, capture of 0/0`; `while loading`."""
    first = doing.partition(" ")[0]
    return f"while {doing}" if first.endswith("ing") else f"in {doing}"


def _words(text: str) -> VerdictDetail:
    return VerdictDetail(more=(text,) if text else ())


def means_nothing(speed: Speed) -> bool:
    """Whether the ratio of the times says nothing: it was compiled meanwhile, or the machine was
    busy."""
    return bool(speed.compiled_again) or busy(speed)


def busy(speed: Speed | EngineSpeed) -> bool:
    """Whether the noise is so large that not even `no difference` is known."""
    return speed.in_noise and speed.noise >= USELESS


def _speed(speed: Speed, served: Served) -> Verdict:
    sides = (
        f"eager {milliseconds_text(speed.eager_ms)}",
        f"compiled {milliseconds_text(speed.compiled_ms)}",
    )
    noise, pairs = f"±{percent(speed.noise)}", plural(speed.pairs, "pair")
    if speed.compiled_again:
        again = f"{plural(speed.compiled_again, 'graph')} compiled in {pairs} of calls"
        detail = VerdictDetail((sides[0], f"{sides[1]}; {again}"))
        return Verdict(RECOMPILED, detail, "lost")
    if means_nothing(speed):
        detail = VerdictDetail(sides, (f"{noise} ({pairs})",))
        return Verdict(MACHINE_BUSY, detail, "neutral")
    if speed.in_noise:
        what = "speed-up" if speed.speedup >= 1 else "difference"
        detail = VerdictDetail(sides, (f"{ratio_text(speed.speedup)} {noise} ({pairs})",))
        return Verdict(f"No measurable {what}", detail, "neutral")
    took = f"compiled in {seconds_text(speed.compile_seconds)}"
    cost = {"": (took,), "some": (took, "partly from caches"), "all": (f"{took} from caches",)}
    detail = VerdictDetail((sides[0], f"{sides[1]} ({noise}, {pairs})"), cost[served])
    factor = factor_text(speed.speedup, speed.noise)
    factor = factor[0].upper() + factor[1:]
    if speed.speedup >= 1:
        return Verdict(f"{factor} faster", detail, "won")
    return Verdict(f"{factor} slower than eager", detail, "lost")


@dataclass(frozen=True)
class Doing:
    stage: Stage
    activity: str
    """`call 1 of 4`; of a graph in a stage its id, `0/0/forward`."""

    @property
    def text(self) -> str:
        """`build: 0/0/forward`."""
        return f"{self.stage}: {self.activity}" if self.activity else self.stage


def doing(recording: Recording) -> Doing | None:
    """The later one of the last progress and the last stage that a graph entered; None before
    either."""
    progress, start = recording.last(Progress), recording.last(StageStart)
    if start is not None and (progress is None or start.at >= progress.at):
        return Doing(start.stage, start.graph or start.compile_id)
    return Doing(progress.stage, progress.activity) if progress is not None else None


def last_words(recording: Recording, failure: Failure) -> str:
    """The last line on stderr of a program that ended itself: programs print why, and exit."""
    if failure.type != SystemExit.__name__:
        return ""
    printed = "".join(output.text for output in recording.all(Output) if output.stream == "stderr")
    return next((line.strip() for line in reversed(printed.split("\n")) if line.strip()), "")
