"""What a short call spends outside its compiled graphs, and on its guards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tcw.compiler.trace.records import Advice, GraphBreak, Guard, Guards, Location, Speed
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary.guard_groups import CONSTANTS
from tcw.viewers.words import milliseconds_text, percent, plural

SHARE = 0.2
"""Share of a compiled call from which its guards need attention."""
LEAST_US = 20.0
"""Microseconds below which they do not: of any call, however short."""
_NAMED = 3
"""At most this many groups of guards are named."""
_TRAINING = 0.5
"""In training, eager spends time outside operations too, in autograd: its share of eager's time in
which the compiled graphs have to run for what surrounds them to be the cause."""


def outside_words(recording: Recording, speed: Speed) -> str:
    """`guards and wrappers take 58% of its 71.0 µs, and eager is done in 52.0 µs`, if without them
    the call would not be slower than eager; else ""."""
    share = outside_share(speed)
    if share is None or recording.all(GraphBreak):
        return ""
    enough = speed.eager_ms if speed.what == "forward" else _TRAINING * speed.eager_ms
    if (1 - share) * speed.compiled_ms > enough:
        return ""
    what = "guards and wrappers" if speed.what == "forward" else "guards, wrappers and autograd"
    return f"{what} take {percent(share)} of its {milliseconds_text(speed.compiled_ms)}"


def outside_share(speed: Speed) -> float | None:
    """The share of a compiled call that is outside its compiled graphs."""
    if speed.outside_ms is None or not speed.alone_ms or speed.alone_ms < speed.outside_ms:
        return None
    return speed.outside_ms / speed.alone_ms


def warm_guards_us(recording: Recording) -> float | None:
    """Microseconds of checking the guards of all frames in a call; of a frame with several entries
    the shortest, so it takes at least that. None if not measured."""
    frames = grouped(
        (record.compile_id.partition("/")[0], record.warm_us)
        for record in recording.all(Guards)
        if record.warm_us is not None
    )
    return sum(min(times) for times in frames.values()) if frames else None


@dataclass(frozen=True)
class GuardShare:
    """Guards that take a good part of each call."""

    us: float
    """Microseconds a call."""
    share: float
    count: int
    groups: tuple[tuple[str, tuple[Guard, ...]], ...]
    """The guards by what they are on, most first: `self.cfg[…]`."""
    location: Location | None
    """The line that made torch install the first of the largest group."""

    @property
    def title(self) -> str:
        took = milliseconds_text(self.us / 1e3)
        return f"{plural(self.count, 'guard')} take {took}, {percent(self.share)} of each call"

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{len(guards)} on {name}" for name, guards in self.groups[:_NAMED])

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Ideas: none of them was tried."""
        name, guards = self.groups[0]
        found = []
        tensors = all(guard.kind == "TENSOR_MATCH" for guard in guards)
        if tensors and not _of_module(guards[0]):
            found.append(Advice(text=f"Pass {name} as one stacked tensor: it has one guard"))
        elif any(guard.kind in CONSTANTS for guard in guards):
            found.append(
                Advice(
                    text=f"Compute what forward takes from {name} once, outside, and read only the "
                    "result: it has one guard"
                )
            )
        if any(_of_module(guard) for _, guards in self.groups[:1] for guard in guards):
            dropped = "skip_guard_on_all_nn_modules_unsafe"
            gone = "a module's changed attribute, hook or training mode"
        else:
            dropped, gone = "keep_tensor_guards_unsafe", "any change but a tensor's size or dtype"
        found.append(
            Advice(
                text=f'Unsafe: options={{"guard_filter_fn": torch.compiler.{dropped}}} of '
                f"torch.compile drops such guards; {gone} then goes unnoticed"
            )
        )
        return tuple(found)


def guard_share(recording: Recording) -> GuardShare | None:
    """What the guards cost in each call, if it is a good part of it."""
    speed, us = recording.speed, warm_guards_us(recording)
    if speed is None or us is None or speed.compiled_again or not speed.alone_ms:
        return None
    share = us / 1e3 / speed.alone_ms
    if us < LEAST_US or not SHARE <= share <= 1:
        return None
    timed = [record for record in recording.all(Guards) if record.warm_us is not None]
    groups = _groups(guard for record in timed for guard in record.guards)
    if not groups:
        return None
    location = next((guard.location for guard in groups[0][1] if guard.location), None)
    count = sum(len(guards) for _, guards in groups)
    return GuardShare(us, share, count, groups, location)


_KEY = re.compile(r"\[[^\[\]]*\]|(?<=\.)\d+(?=\.|$)")


def _groups(guards: Iterable[Guard]) -> tuple[tuple[str, tuple[Guard, ...]], ...]:
    """The guards by name, where keys and numbers in it are one: `self.cfg[…]`."""
    found = grouped((_KEY.sub(_key, guard.name or "torch's state"), guard) for guard in guards)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return tuple((name, tuple(group)) for name, group in ordered)


def _key(match: re.Match[str]) -> str:
    return "[…]" if match[0].startswith("[") else "*"


def _of_module(guard: Guard) -> bool:
    """Whether it is on something of a module: an argument is none."""
    return "._modules" in guard.source or guard.source.startswith("L['self']")
