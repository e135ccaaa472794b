"""Dynamo's state at any step: its frames with stack and locals, the graph and the guards so far.

A `Step` has what changed since the previous step in the same frame. Here the changes are applied
again. One step forward costs what it changed, and going back starts from the nearest checkpoint, so
a step costs the same at the start and at the end of 10,000. What only grows (nodes, guards) is kept
once, with a count for each step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from weakref import WeakKeyDictionary

from tcw.compiler.trace.records import Bytecode, StackValue, Step
from tcw.viewers.recording import Recording

EVERY = 64
"""Least number of steps between checkpoints. It is raised to the number of values in the frames, so
that all checkpoints together stay within a few times the size of the recording."""
_LEAVES = ("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS")


@dataclass
class TracedFrame:
    """One function being traced."""

    function: str
    file: str
    step: Step
    """The last step in it: its current position."""
    stack: list[StackValue] = field(default_factory=list)
    """Bottom first."""
    locals: dict[str, StackValue] = field(default_factory=dict)
    visited: tuple[tuple[int, str, str], ...] = ()
    """Its first instructions, (ip, opcode, argument): they identify its code."""

    def copy(self) -> TracedFrame:
        return TracedFrame(
            self.function, self.file, self.step, self.stack[:], self.locals.copy(), self.visited
        )


@dataclass(frozen=True)
class Installed:
    """A guard that the step before installed."""

    kind: str
    name: str
    by: Step


Frames = dict[int, TracedFrame]
"""Depth -> frame."""


def is_entry(step: Step, before: Step | None, there: TracedFrame | None) -> bool:
    """Whether a step is the first one of a new frame rather than the next of `there`, the frame
    last seen at its depth. `before`: the previous step, at any depth."""
    if before is None or there is None:
        return True
    if step.frame >= 0 and there.step.frame >= 0:
        return step.frame != there.step.frame
    if there.function != step.function or there.file != step.location.file:
        return True
    if step.depth < before.depth:
        return False
    if step.depth > before.depth:
        resumes = there.step.opcode == "YIELD_VALUE" and step.ip > 0
        repeated = there.locals and there.locals.keys() <= step.set_locals.keys()
        return not resumes or bool(repeated)
    return before.opcode in _LEAVES or (step.ip == 0 and "JUMP" not in before.opcode)


def apply(frames: Frames, step: Step, before: Step | None) -> None:
    """Advance the frames by one step. A frame that was left stays at its depth until another one
    takes its place: a generator resumes in it."""
    there = frames.get(step.depth)
    if is_entry(step, before, there):
        # By depth, as they were entered: what is deeper than this one comes after it.
        while frames and (deepest := next(reversed(frames))) > step.depth:
            del frames[deepest]
        there = frames[step.depth] = TracedFrame(step.function, step.location.file, step)
    assert there is not None
    there.step = step
    if step.popped:
        del there.stack[max(0, len(there.stack) - step.popped) :]
    there.stack.extend(step.pushed)
    there.locals.update(step.set_locals)
    for name in step.deleted_locals:
        there.locals.pop(name, None)
    if len(there.visited) < 8:
        there.visited = (*there.visited, (step.ip, step.opcode, step.argument))


@dataclass(frozen=True)
class StepState:
    """Dynamo's state before it ran an instruction."""

    track: StepTrack
    index: int
    """Index of the step in its track, from 0."""
    frames: tuple[TracedFrame, ...]
    """Outermost first."""

    @property
    def step(self) -> Step:
        return self.track.steps[self.index]

    @property
    def frame(self) -> TracedFrame:
        return self.frames[-1]

    @property
    def stack(self) -> list[StackValue]:
        """Top first."""
        return self.frame.stack[::-1]

    @property
    def locals(self) -> dict[str, StackValue]:
        return self.frame.locals

    @property
    def chain(self) -> str:
        """`attention ‹ forward`."""
        return " ‹ ".join(frame.function for frame in reversed(self.frames))

    @property
    def nodes(self) -> list[str]:
        """The FX nodes so far, with their current names."""
        return self.track.names(0, self.track.node_counts[self.index], self.index)

    @property
    def coming(self) -> list[str] | None:
        """The nodes that this instruction adds, with all that it calls, by their current names;
        None if the recording does not reach that far."""
        track = self.track
        after = track.after[self.index]
        if after < 0:
            return None
        counts = track.node_counts
        return track.names(counts[self.index], counts[after], len(track.steps) - 1)

    @property
    def guards(self) -> int:
        """How many guards are installed."""
        return self.step.guards

    @property
    def known_guards(self) -> Sequence[Installed]:
        """The guards that the steps name, in order of installation."""
        return self.track.guards[: self.track.guard_counts[self.index]]


class StepTrack:
    """The steps of one attempt at one compile."""

    def __init__(self, compile_id: str, attempt: int) -> None:
        self.compile_id = compile_id
        self.attempt = attempt
        self.steps: list[Step] = []
        self.node_counts: list[int] = []
        """Step -> how many nodes there are."""
        self.after: list[int] = []
        """Step -> the next step in its frame or in a caller; -1 if unknown."""
        self.guards: list[Installed] = []
        self.guard_counts: list[int] = []
        self.final: list[str] = []
        """The nodes by their final names."""
        self._nodes: list[str] = []
        self._places: dict[str, int] = {}
        self._renames: dict[int, tuple[list[int], list[str]]] = {}
        """Node -> the steps at which it was renamed, and its names from there on."""
        self._names: dict[str, str] = {}
        """Old name -> new name."""
        self._open: list[int] = []
        """Steps whose `after` is still unknown, outermost first."""
        self._checkpoints: list[tuple[int, Frames]] = []
        """The frames at some steps, in order."""
        self._due = 0
        """The step from which the next checkpoint is set."""
        self._tip: Frames = {}
        self._walk: tuple[int, Frames] | None = None
        """Where the last query ended: the next one is usually one step further."""

    def add(self, step: Step) -> None:
        """Add the next step of the recording."""
        index = len(self.steps)
        before = self.steps[-1] if self.steps else None
        self.steps.append(step)
        while self._open and self.steps[self._open[-1]].depth >= step.depth:
            self.after[self._open.pop()] = index
        self.after.append(-1)
        self._open.append(index)
        for old, new in step.renamed.items():
            place = self._places.pop(old, None)
            if place is not None:
                self._places[new] = place
                at, names = self._renames.setdefault(place, ([], []))
                at.append(index)
                names.append(new)
                self._names[old] = self.final[place] = new
        for name in step.nodes:
            self._places[name] = len(self._nodes)
            self._nodes.append(name)
            self.final.append(name)
        self.node_counts.append(len(self._nodes))
        by = before or step
        self.guards.extend(Installed(guard.kind, guard.name, by) for guard in step.new_guards)
        self.guard_counts.append(len(self.guards))
        apply(self._tip, step, before)
        if index >= self._due:
            self._checkpoints.append((index, _copy(self._tip)))
            self._due = index + max(EVERY, sum(map(_size, self._tip.values())))

    def last_name(self, name: str) -> str:
        """The final name of a node that was once called `name`."""
        for _ in range(8):
            name = self._names.get(name, name)
        return name

    def names(self, first: int, last: int, index: int) -> list[str]:
        """The names of the nodes from `first` up to `last` as of a step."""
        names = self._nodes[first:last]
        for node, (steps, renamed) in self._renames.items():
            place = bisect_right(steps, index) - 1
            if first <= node < last and place >= 0:
                names[node - first] = renamed[place]
        return names

    def state(self, index: int) -> StepState:
        """Dynamo's state before it ran step `index`."""
        at, known = self._checkpoints[bisect_right(self._checkpoints, index, key=itemgetter(0)) - 1]
        if self._walk is not None and at <= self._walk[0] <= index:
            at, frames = self._walk
        else:
            frames = _copy(known)
        for number in range(at + 1, index + 1):
            apply(frames, self.steps[number], self.steps[number - 1])
        self._walk = (index, frames)
        depth = self.steps[index].depth
        shown = tuple(frames[frame].copy() for frame in sorted(frames) if frame <= depth)
        return StepState(self, index, shown)


def _size(frame: TracedFrame) -> int:
    """Size of a copy, in values."""
    return 8 + len(frame.stack) + len(frame.locals)


def _copy(frames: Frames) -> Frames:
    return {depth: frame.copy() for depth, frame in frames.items()}


class StepBook:
    """All steps of a recording by attempt; it grows with the recording.

    A restarted attempt (another engine, another run of the model) is a track of its own.
    """

    def __init__(self) -> None:
        self.tracks: list[StepTrack] = []
        self._fed = 0
        self._last: dict[tuple[str, int], StepTrack] = {}
        self._places: dict[int, tuple[StepTrack, int]] = {}
        self._lines: dict[tuple[str, str, int, str, str], int] = {}
        self._inlined: dict[tuple[str, str, int, int], str] = {}
        self._codes = 0
        self._by_function: dict[tuple[str, str], list[Bytecode]] = {}

    def feed(self, recording: Recording) -> None:
        """Add what is new in the recording."""
        steps = recording.all(Step)
        for step in steps[self._fed :]:
            key = step.compile_id, step.attempt
            track = self._last.get(key)
            if track is None or step.step <= track.steps[-1].step:
                track = self._last[key] = StepTrack(*key)
                self.tracks.append(track)
            self._places[id(step)] = track, len(track.steps)
            place = step.function, step.location.file, step.ip
            self._lines[*place, step.opcode, step.argument] = step.location.line
            before = track.steps[-1] if track.steps else None
            if before is not None and step.depth > before.depth:
                where = before.location
                called = before.function, where.file, before.ip, where.line
                self._inlined[called] = step.function
            track.add(step)
        self._fed = len(steps)
        codes = recording.all(Bytecode)
        for code in codes[self._codes :]:
            self._by_function.setdefault((code.function, code.location.file), []).append(code)
        self._codes = len(codes)

    def state(self, step: Step) -> StepState | None:
        """The state before `step`, a record of this recording; None if it belongs to another."""
        found = self._places.get(id(step))
        return found[0].state(found[1]) if found is not None else None

    def attempts(self, track: StepTrack) -> int:
        """How many attempts at this compile were stepped through, this and later ones included."""
        count = track.attempt + 1
        for other in self.tracks[self.tracks.index(track) + 1 :]:
            if other.compile_id == track.compile_id:
                if other.attempt < count:
                    break
                count = other.attempt + 1
        return count

    def bytecode(self, frame: TracedFrame, text: Recording) -> Bytecode | None:
        """The code of a frame: of several functions with its name, the one whose instructions match
        those that ran."""
        line = frame.step.location.line
        found = None
        for code in self._by_function.get((frame.function, frame.file), ()):
            low, high = code.location.line, code.location.end_line or code.location.line
            if not low <= line <= high:
                continue
            known = instructions(text.text(code.text))
            ran = (*frame.visited, (frame.step.ip, frame.step.opcode, frame.step.argument))
            if all(ip < len(known) and known[ip] == (name, words) for ip, name, words in ran):
                found = code
        return found

    def line(self, code: Bytecode, ip: int, opcode: str, argument: str) -> int:
        """The source line of an instruction; 0 if neither the record nor a step has it."""
        if ip < len(code.lines):
            return code.lines[ip]
        low, high = code.location.line, code.location.end_line or code.location.line
        place = code.function, code.location.file, ip
        found = self._lines.get((*place, opcode, argument), 0)
        return found if low <= found <= high else 0

    def inlined(self, code: Bytecode, ip: int, line: int) -> str:
        """The function that an instruction called and Dynamo inlined; "" for none."""
        return self._inlined.get((code.function, code.location.file, ip, line), "")


@lru_cache(maxsize=256)
def instructions(text: str) -> tuple[tuple[str, str], ...]:
    """(opcode, argument) by instruction pointer, of a `Bytecode`'s text."""
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        number, _, rest = line.partition(" ")
        name, _, argument = rest.partition(" ")
        if number == str(len(found)) and name:
            found.append((name, argument))
        elif found:
            found[-1] = found[-1][0], f"{found[-1][1]}\n{line}"
    return tuple(found)


_BOOKS: WeakKeyDictionary[Recording, StepBook] = WeakKeyDictionary()


def book_of(recording: Recording) -> StepBook:
    """The steps of a recording so far."""
    book = _BOOKS.get(recording)
    if book is None:
        book = _BOOKS[recording] = StepBook()
    book.feed(recording)
    return book
