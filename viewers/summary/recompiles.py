"""Recompiles, by cause: one changed input that recompiles three frames is one cause."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from tcw.compiler.trace.records import (
    Advice,
    CallStart,
    EagerFallback,
    FailedGuard,
    FrameStart,
    Guards,
    Recompile,
)
from tcw.compiler.trace.source_names import root_of
from tcw.viewers.collected import known_sum
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import ordered_advice
from tcw.viewers.summary.calls import arguments_of
from tcw.viewers.summary.function_names import FunctionNames
from tcw.viewers.summary.on_stack import StackNames
from tcw.viewers.summary.own_words import without_reprs
from tcw.viewers.summary.phases import compile_seconds
from tcw.viewers.summary.place import Place, place_of
from tcw.viewers.words import numbers_text

_INDEX = re.compile(r"(size|stride) mismatch at index (\d+)")
_NO_REASON = "Unexpected recompilation: "
"""How torch begins where all guards of an entry hold when it looks for the reason."""
UNEXPLAINED = (
    "by the time torch looks for the reason, no guard fails; if several threads call it at once, "
    "another one has compiled it meanwhile"
)


@dataclass(frozen=True)
class GuardChange:
    """What a guard expected and what it saw."""

    name: str
    """`x.size(0)`, `temperature`."""
    expected: str
    seen: str
    is_size: bool = False

    @property
    def attribute(self) -> str:
        """The property of a tensor that changed, which what is computed from it inherits; "" of
        anything else."""
        last = self.name.rpartition(".")[2]
        return last if last in ("dtype", "device", "requires_grad", "dim()") else ""

    @property
    def text(self) -> str:
        """`temperature 0.125 → 0.25`, `2 <= x.size(1) <= 8, seen 9`, `n <= x.size(0), seen n = 5,
        x.size(0) = 4`; `n is no longer 2.0` if what was seen is not known, as in a log; the
        guard's own text if no values are known."""
        if not self.seen:
            conditional = not self.expected or self.name in self.expected
            return self.name if conditional else f"{self.name} is no longer {self.expected}"
        if all(name in self.expected for name in self.name.split(", ")):
            return f"{self.expected}, seen {self.seen}"
        return f"{self.name} {self.expected} → {self.seen}"


@dataclass(frozen=True)
class RecompiledFrame:
    """One frame that was compiled again."""

    compile_id: str
    instead_of: str
    """The cache entry that came closest to matching."""
    function: str
    call: int
    change: GuardChange
    seconds: float | None
    """Seconds of its compile, backward included; None if the recording ended before."""
    place: Place | None
    """The line that made torch depend on the value."""
    advice: tuple[Advice, ...]
    why: FailedGuard | None
    """The failed guard of that entry."""
    record: Recompile


@dataclass(frozen=True)
class RecompileCause:
    """One thing that changed, with every frame recompiled because of it."""

    calls: tuple[int, ...]
    change: GuardChange
    """In the first frame it hit."""
    values: tuple[str, ...]
    """Every value in order, from the first expected to the last seen."""
    frames: tuple[RecompiledFrame, ...]
    seconds: float | None
    """Seconds of all these compiles; None if none has ended."""
    place: Place | None
    advice: tuple[Advice, ...]
    repeated: int = 0
    """Frames recompiled during timing, while calls were repeated with the same inputs."""

    @property
    def compile_ids(self) -> tuple[str, ...]:
        return tuple(frame.compile_id for frame in self.frames)

    @property
    def callers(self) -> str:
        """`calls 4 and 6`, `the timed calls`; "" if the calls are unknown."""
        numbers = [call for call in self.calls if call]
        found = []
        if numbers:
            which = numbers_text(numbers)
            which = which.replace(", ", " and ") if len(numbers) == 2 else which
            found.append(f"{'call' if len(numbers) == 1 else 'calls'} {which}")
        if self.repeated:
            found.append("the timed calls")
        return " and ".join(found)

    @property
    def functions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(frame.function for frame in self.frames))


def recompile_causes(recording: Recording) -> tuple[RecompileCause, ...]:
    """All causes, the costliest first.

    Frames recompiled in one call belong together if the same value changed. A resumed frame whose
    tensor changed size belongs to the size change of the frame that it resumes. A number in an
    inner function that changed like a size (`batch_size` 2 → 3) follows from that size; an
    argument of the call itself does not, and neither does an attribute or the length of another
    object. If the same name fails again at the same place in a later call, it is the same cause.
    The attempt that reached the recompile limit compiled nothing: it is left out, unless it is all
    that the cause has.
    """
    calls = _Calls(recording)
    names = StackNames(recording)
    functions = FunctionNames(recording)
    seconds = compile_seconds(recording)
    resumed = {start.compile_id for start in recording.all(FrameStart) if start.resumes_at}
    groups: list[list[RecompiledFrame]] = []
    for record in recording.all(Recompile):
        frame = _frame(recording, record, calls, seconds, names)
        frame = replace(frame, function=functions.of(frame.compile_id, frame.function))
        follows, argument = frame.compile_id in resumed, calls.takes(frame)
        alike = (one for one in groups if _same_cause(one[0], frame, follows, argument))
        group = next(alike, None)
        if group is None:
            groups.append([frame])
        else:
            group.append(frame)
    refused = {
        fallback.compile_id for fallback in recording.all(EagerFallback) if fallback.by_limit
    }
    causes = []
    for group in _merge_calls(groups):
        done = [frame for frame in group if frame.compile_id not in refused]
        causes.append(_cause(done or group, resumed, calls))
    return tuple(sorted(causes, key=lambda cause: -(cause.seconds or 0.0)))


def change_of(failed: FailedGuard) -> GuardChange:
    """The values that a failed guard expected and saw, named as precisely as torch's text
    allows."""
    name = failed.name or failed.source or failed.guard
    index = _INDEX.search(failed.guard)
    is_size = index is not None or ".size(" in name or ".shape" in name
    if index is not None and "(" not in name and "[" not in name:
        name = f"{name}.{index[1]}({index[2]})"
    seen = failed.seen.removeprefix(f"{name} = ")
    name, expected, seen = map(without_reprs, (name, failed.expected, seen))
    return GuardChange(name, expected, seen, is_size)


class _Calls:
    """The arguments of each call, and the call of each compile."""

    def __init__(self, recording: Recording) -> None:
        self.arguments = {start.call: arguments_of(start) for start in recording.all(CallStart)}
        self.made_in = {start.compile_id: start.call for start in recording.all(FrameStart)}

    def repeats(self, frame: RecompiledFrame) -> bool:
        """Whether `frame` was recompiled during timing, while calls were repeated. A script makes
        its own calls: none of them is a repetition."""
        return bool(self.arguments) and not frame.call

    def takes(self, frame: RecompiledFrame) -> bool:
        """Whether what changed for `frame` is an argument of the call, not derived from one."""
        return root_of(frame.change.name) in self.arguments.get(frame.call, {})

    def differing(self, entry: str, call: int) -> int:
        """How many arguments of `call` differ from those for which `entry` was compiled."""
        then = self.arguments.get(self.made_in.get(entry, 0), {})
        now = self.arguments.get(call, {})
        return sum(then.get(name) != now.get(name) for name in {*then, *now})

    def nearest(self, record: Recompile) -> FailedGuard | None:
        """The failure that explains the recompile: that of the entry compiled for the most similar
        call, the most recent if several. Each entry fails at its first difference, which for
        another entry often has nothing to do with the change. None if torch has no reason."""
        explained = [guard for guard in record.failed if not guard.guard.startswith(_NO_REASON)]
        return min(
            explained, key=lambda guard: self.differing(guard.entry, record.call), default=None
        )


def _frame(
    recording: Recording,
    record: Recompile,
    calls: _Calls,
    seconds: dict[str, float],
    names: StackNames,
) -> RecompiledFrame:
    why = calls.nearest(record)
    unexplained = not record.reason.strip() or _NO_REASON in record.reason
    change = GuardChange(UNEXPLAINED if unexplained else record.reason, "", "")
    if why is not None:
        change = change_of(why)
        change = replace(change, name=names.named(change.name, why.entry))
    return RecompiledFrame(
        compile_id=record.compile_id,
        instead_of=why.entry if why else "",
        function=record.function,
        call=record.call,
        change=change,
        seconds=seconds.get(record.compile_id),
        place=_place(recording, record, why),
        advice=_advice(record, why),
        why=why,
        record=record,
    )


def _whole_advice(frames: list[RecompiledFrame], resumed: Collection[str]) -> tuple[Advice, ...]:
    """The advice that helps all frames: the first one's, since what changes there changes behind
    it. A mark, however, is on one tensor: it does not reach what is computed from it behind a graph
    break, in a resumed frame or in a function called there."""
    given = [frame.advice for frame in frames if frame.advice]
    first = given[0] if given else ()
    if not _marks(first):
        return first
    names = {root_of(frame.change.name) for frame in frames}
    unmarked = [
        frame.advice
        for frame in frames
        if frame.compile_id in resumed and frame.advice and not _marks(frame.advice)
    ]
    return next(iter(unmarked), first if len(names) == 1 else (_DYNAMIC,))


_DYNAMIC = Advice(
    text="In every frame: a mark on one tensor does not reach what another frame computes from it",
    code="torch.compile(model, dynamic=True)",
)


def _marks(advice: tuple[Advice, ...]) -> bool:
    return bool(advice) and "mark_" in advice[0].code


def _advice(record: Recompile, why: FailedGuard | None) -> tuple[Advice, ...]:
    """The failure's; the record's own one belongs to its first failure."""
    if why is not None and (why.advice or why != record.failed[0]):
        return why.advice
    return record.advice if why is not None or not record.failed else ()


def _place(recording: Recording, record: Recompile, why: FailedGuard | None) -> Place | None:
    """The failure's; in traces without it, that of the failed guard."""
    if why is not None and why.location is not None:
        return place_of(recording, why.location, why.source_line)
    if why is not None and why != record.failed[0]:
        for guards in recording.all(Guards):
            for guard in guards.guards if guards.compile_id == why.entry else ():
                if guard.source == why.source and guard.location is not None:
                    return place_of(recording, guard.location)
    return place_of(recording, record.location, record.source_line)


def _same_cause(
    first: RecompiledFrame, other: RecompiledFrame, resumed: bool, argument: bool
) -> bool:
    if first.call != other.call:
        return False
    one, two = first.change, other.change
    if one.is_size and two.is_size and (resumed or one.name == two.name):
        return True
    if resumed and not argument and one.attribute and one.attribute == two.attribute:
        return (one.expected, one.seen) == (two.expected, two.seen)
    if not one.seen or (one.expected, one.seen) != (two.expected, two.seen):
        return False
    if one.is_size == two.is_size:
        # a variable of the frame may hold what another frame passed to it
        return one.name == two.name or one.is_size or two.name.isidentifier()
    return not argument


def _merge_calls(groups: list[list[RecompiledFrame]]) -> list[list[RecompiledFrame]]:
    """Merge groups of different calls that concern the same name at the same place."""
    merged: dict[tuple[str, str, object], list[RecompiledFrame]] = {}
    for group in groups:
        place = group[0].place
        site = (place.file, place.line) if place else None
        merged.setdefault((group[0].function, group[0].change.name, site), []).extend(group)
    return list(merged.values())


def _cause(
    frames: list[RecompiledFrame], resumed: Collection[str], calls: _Calls
) -> RecompileCause:
    first = frames[0]
    values = [first.change.expected]
    for frame in frames:
        if frame.change.name == first.change.name and frame.change.seen != values[-1]:
            values.append(frame.change.seen)
    change = replace(first.change, seen=values[-1]) if len(values) > 1 else first.change
    advice = _whole_advice(frames, resumed)
    return RecompileCause(
        calls=tuple(dict.fromkeys(frame.call for frame in frames)),
        change=change,
        values=tuple(values),
        frames=tuple(frames),
        seconds=known_sum(frame.seconds for frame in frames),
        place=first.place,
        advice=ordered_advice(advice),
        repeated=sum(calls.repeats(frame) for frame in frames),
    )
