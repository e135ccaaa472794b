"""The calls: their arguments in words, and how each was split into compiled pieces."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tcw.compiler.trace.records import (
    CallEnd,
    CallStart,
    FrameEnd,
    FrameStart,
    Graph,
    GraphBreak,
    Guards,
)
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import Crossings, break_title, crossings_of, host_waits
from tcw.viewers.summary.function_names import FunctionNames
from tcw.viewers.summary.phases import compile_seconds
from tcw.viewers.summary.place import Place, place_of
from tcw.viewers.words import shape_text, tensor_text


def gpu_of(recording: Recording) -> str:
    """Name of the GPU that a call's tensors were on; of a program, whose calls are not recorded,
    those of a captured graph. "" if none were."""
    machine = recording.environment
    tensors = [
        argument.tensor for start in recording.all(CallStart) for argument in start.arguments
    ]
    if recording.settings is not None and recording.settings.program:
        graphs = (graph for graph in recording.all(Graph) if graph.kind == "captured")
        tensors += [node.value for graph in graphs for node in graph.nodes]
    on_gpu = any(tensor is not None and tensor.device.startswith("cuda") for tensor in tensors)
    return machine.gpu or "cuda" if on_gpu and machine else ""


def arguments_of(start: CallStart) -> dict[str, str]:
    """Name -> `f32 4×128×256`, or the description of the value."""
    return {
        argument.name: tensor_text(argument.tensor) if argument.tensor else argument.value
        for argument in start.arguments
    }


def short_arguments_of(start: CallStart) -> dict[str, str]:
    """Name -> `4×128×256`, or the description of the value."""
    return {
        argument.name: shape_text(argument.tensor.shape) if argument.tensor else argument.value
        for argument in start.arguments
    }


@dataclass(frozen=True)
class Cut:
    """A graph break: where a compile's graph ended before its function did."""

    gb: str
    title: str
    place: Place
    crossings: Crossings
    host_waits: bool


@dataclass(frozen=True)
class Piece:
    """One compile of one frame."""

    compile_id: str
    function: str
    """Its name, with its class where another function has the same name."""
    call: int
    place: Place | None
    resumes_at: int | None
    """The user's line at which a resume function continues."""
    status: str
    """`compiled`, `empty`, `skipped`, `failed`, or `open` if its end was not recorded."""
    ops: int
    guards: int
    seconds: float | None
    """Of its compile, including its backward's."""
    recompiles: bool
    """Whether its frame had been compiled before."""
    cuts: tuple[Cut, ...]

    @property
    def frame(self) -> str:
        return self.compile_id.partition("/")[0]


@dataclass(frozen=True)
class ModelCall:
    """One call of the compiled model; number 0 holds what was compiled outside calls."""

    number: int
    pieces: tuple[Piece, ...]
    """What was compiled in it, in order."""
    hits: tuple[str, ...]
    """Ids of earlier compiles that it reused."""
    seconds: float | None
    arguments: dict[str, str]
    """Name -> the sizes of a tensor, `4×128×256`, or the value, `0.125`."""
    changed: dict[str, str]
    """The arguments that differ from the call before."""


def calls_of(recording: Recording) -> tuple[ModelCall, ...]:
    """All calls in order. Compiles outside any call are call 0: the first, or, where they began
    after the calls (while timing), the last."""
    starts = {start.call: start for start in recording.all(CallStart)}
    ends = {end.call: end for end in recording.all(CallEnd)}
    pieces = grouped((piece.call, piece) for piece in _pieces(recording))
    calls = []
    before: dict[str, str] = {}
    numbers = sorted({*starts, *ends, *pieces})
    began = next((start.at for start in recording.all(FrameStart) if not start.call), 0.0)
    if numbers[:1] == [0] and 1 in starts and began > starts[1].at:
        numbers = [*numbers[1:], 0]
    for number in numbers:
        arguments = arguments_of(starts[number]) if number in starts else {}
        short = short_arguments_of(starts[number]) if number in starts else {}
        differ = {name for name in arguments if before.get(name) not in (None, arguments[name])}
        end = ends.get(number)
        calls.append(
            ModelCall(
                number=number,
                pieces=tuple(pieces.get(number, ())),
                hits=end.hits if end else (),
                seconds=end.seconds if end else None,
                arguments=short,
                changed={name: value for name, value in short.items() if name in differ},
            )
        )
        before = arguments or before
    return tuple(calls)


def first_cut_call(calls: tuple[ModelCall, ...]) -> ModelCall | None:
    """The call that best shows the split into graphs: the first that compiled something new."""
    compiling = [call for call in calls if call.pieces]
    anew = (call for call in compiling if any(not piece.recompiles for piece in call.pieces))
    return next(anew, compiling[0] if compiling else None)


def _pieces(recording: Recording) -> list[Piece]:
    ends = {end.compile_id: end for end in recording.all(FrameEnd)}
    seconds = compile_seconds(recording)
    ops = {g.compile_id: g.ops for g in recording.all(Graph) if g.kind == "captured"}
    guards = {record.compile_id: record.count for record in recording.all(Guards)}
    cuts: dict[str, dict[tuple[str, int, str], Cut]] = defaultdict(dict)
    for record in recording.all(GraphBreak):
        place = place_of(recording, record.location, record.source_line)
        assert place is not None
        cuts[record.compile_id][place.file, place.line, record.gb or record.type] = Cut(
            gb=record.gb,
            title=break_title(record),
            place=place,
            crossings=crossings_of(record),
            host_waits=host_waits(record),
        )
    names = FunctionNames(recording)
    starts: dict[str, FrameStart] = {}
    for start in recording.all(FrameStart):
        starts.setdefault(start.compile_id, start)
    pieces = []
    for compile_id, start in starts.items():
        end = ends.get(compile_id)
        pieces.append(
            Piece(
                compile_id=compile_id,
                function=names.of(compile_id, start.called),
                call=start.call,
                place=place_of(recording, start.wrapped or start.location),
                resumes_at=start.resumes_at,
                status=end.status if end else "open",
                ops=ops.get(compile_id, end.ops if end else 0),
                guards=guards.get(compile_id, end.guards if end else 0),
                seconds=seconds.get(compile_id),
                recompiles=not compile_id.endswith("/0"),
                cuts=tuple(cuts.get(compile_id, {}).values()),
            )
        )
    return pieces
