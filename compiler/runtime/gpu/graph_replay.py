"""A compiled graph as CUDA graphs: one launch for all of its kernels and library calls.

A recording belongs to the sizes of a call and to the addresses of what it reads in place:
parameters, buffers, and outputs of other recordings. Other inputs are copied into memory of its
own. Its outputs and temporaries lie in a pool of its own. In a pool of several recordings, the
outputs of a later one may lie where an earlier one has its temporaries. A replay of the earlier one
(a backward, say, while the loss of a second forward is alive) would overwrite them. A recording is
replayed only while nobody holds an output of its last replay: otherwise another recording is made,
at most `RECORDINGS`, then the kernels are launched one by one into new memory. So no output is ever
overwritten while it is alive, and only a forward's small ones are copied: a loss that lives must
not hold what was saved beside it. (Inductor's cudagraph_trees overwrite, and raise at an access to
what was overwritten.) A replay on another stream waits for the stream of the last one.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import torch
from torch._subclasses.fake_tensor import FakeTensor

from tcw.compiler.control.hooks import Hook, Missing, lacking, resolve
from tcw.compiler.runtime.gpu.copies import copy_all, room_like

RECORDINGS = 4
"""For one set of sizes: calls whose outputs are alive at the same time."""
SIZES = 8
"""Sets of sizes that are recorded."""
SAVED_BYTES = 1 << 20
"""At most this much of what a forward saved is copied for a replay of its backward."""
SMALL_BYTES = 4096
"""Outputs of a forward that are copied at most: a loss, a count."""
MOVED = "a tensor that it reads in place moved"
ALIVE = "outputs of earlier calls are alive"
HOLDERS = "torch._C:_storage_Use_Count"

HOOK = Hook(
    name="holders of memory",
    offers="CUDA graphs whose outputs stay as they are while somebody holds them",
    needs=(HOLDERS,),
    test="engine/test_cuda_graphs.py",
)

Boxed = Callable[[list[Any]], Any]


class Device(Protocol):
    """What records calls."""

    def capture(self, call: Boxed, arguments: list[Any]) -> tuple[Callable[[], object], list[Any]]:
        """Record a call of a graph, without running it, and return (what replays it, its outputs).

        Raises RuntimeError if it cannot be recorded.
        """

    def capturing(self) -> bool:
        """Whether the user is recording a CUDA graph, which then includes the kernels."""

    def reserved(self) -> int | None:
        """Bytes that the allocator holds; None if that is not known."""


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a graph's inputs, by their places."""

    in_place: frozenset[int] = frozenset()
    """Parameters and buffers, which rarely move."""
    saved: frozenset[int] = frozenset()
    """What a backward gets from its forward, in large tensors that are not worth a copy."""
    written: frozenset[int] = frozenset()
    """Inputs whose memory the graph writes."""
    loose: int = 0
    """How many of the first outputs are the caller's, beside what is saved for a backward."""
    symbolic: bool = False
    """Sizes may differ from call to call."""
    device: int = 0


@dataclass(frozen=True, slots=True)
class NewRecording:
    """A recording that was made."""

    sizes: tuple[int, ...]
    """The values of symbolic sizes."""
    again: int
    """How many there were for these sizes."""
    reason: str
    """Why none of those could be replayed."""
    seconds: float
    """With the first replay."""
    bytes: int | None
    """By how much the allocator's memory grew; None if the device does not say."""


class CudaGraphs:
    """The callable of a graph. `told` receives a sentence whenever a reason comes up for which
    calls are not replayed; `made` is called with each recording."""

    def __init__(
        self,
        call: Boxed,
        about: About,
        told: Callable[[str], None],
        device: Device | None = None,
        made: Callable[[NewRecording], None] | None = None,
    ) -> None:
        self.call = call
        self.about = about
        self.recordings: dict[tuple[Any, ...], list[RecordedCall]] = {}
        """By the sizes of a call; empty after the first call, which runs the libraries once."""
        self.refused = ""
        """Why recording has stopped."""
        self._told = told
        self._made = made
        self._said: set[str] = set()
        self._device = device or Streams.of(about.device)

    def __call__(self, arguments: list[Any]) -> Any:
        if self.refused or self._device.capturing() or _fake(arguments):
            return self.call(arguments)
        key = self._sizes(arguments) if self.about.symbolic else ()
        with _lock:
            known = self.recordings.get(key)
            if known is None:
                if len(self.recordings) < SIZES:
                    self.recordings[key] = []
                else:
                    self._say(f"its sizes changed more than {SIZES} times")
                return self.call(arguments)
            for call in known:
                if call.suits(arguments) and not call.held():
                    return call.replay(arguments)
            moved = not any(call.suits(arguments) for call in known)
            if len(known) >= RECORDINGS:
                self._say(
                    f"tensors that it reads in place moved more than {RECORDINGS} times"
                    if moved
                    else f"outputs of its last {RECORDINGS} calls are alive"
                )
                return self.call(arguments)
            if _bytes_to_copy(arguments, self.about) > SAVED_BYTES:
                self._say("its forward was not replayed: what it saved would be copied")
                return self.call(arguments)
            started, reserved = time.perf_counter(), self._device.reserved()
            sizes = tuple(argument for argument in arguments if type(argument) is int)
            try:
                made = RecordedCall(self.call, self.about, arguments, self._device)
            except (RuntimeError, Missing) as error:  # whatever cannot be captured can be launched
                self.refused = str(error).strip().split("\n")[0] or type(error).__name__
                self._say(self.refused)
                return self.call(arguments)
            known.append(made)
            outputs = made.replay(arguments)
            if self._made is not None:
                now = self._device.reserved()
                grown = None if reserved is None or now is None else max(0, now - reserved)
                reason = (MOVED if moved else ALIVE) if len(known) > 1 else ""
                took = time.perf_counter() - started
                self._made(NewRecording(sizes, len(known) - 1, reason, took, grown))
            return outputs

    def _sizes(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            (argument.shape, argument.stride()) if isinstance(argument, torch.Tensor) else argument
            for argument in arguments
        )

    def _say(self, reason: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            self._told(reason)


class RecordedCall:
    """One recorded call. Raises RuntimeError if it cannot be captured, and `Missing`."""

    def __init__(self, call: Boxed, about: About, arguments: Sequence[Any], device: Device) -> None:
        self.addresses: list[tuple[int, int]] = []
        """(place, address) of the inputs that are read where they are."""
        self._copied: list[int] = []
        self._rooms: list[torch.Tensor] = []
        given: list[Any] = []
        for place, argument in enumerate(arguments):
            if isinstance(argument, torch.Tensor) and not _stays(argument, place, about):
                self._copied.append(place)
                self._rooms.append(room_like(argument))
                given.append(self._rooms[-1])
            else:
                if isinstance(argument, torch.Tensor):
                    self.addresses.append((place, argument.data_ptr()))
                given.append(argument)
        copy_all(self._rooms, [arguments[place] for place in self._copied])
        self._back = [
            (place, room)
            for place, room in zip(self._copied, self._rooms, strict=True)
            if place in about.written
        ]
        passed = list(given)
        self._graph, outputs = device.capture(call, passed)
        distinct: dict[int, int] = {}
        """Place of an output among `_outputs`, by its identity: if two outputs became two tensors
        on one memory, autograd would take it twice as a gradient that it may add to."""
        self._order = [
            distinct.setdefault(id(output) if isinstance(output, torch.Tensor) else -place - 1,
                                len(distinct))
            for place, output in enumerate(outputs)
        ]  # fmt: skip
        first = [self._order.index(number) for number in range(len(distinct))]
        self._outputs = [_made_of(outputs[place], given) for place in first]
        self._loose = frozenset(
            number
            for number, (place, own) in enumerate(zip(first, self._outputs, strict=True))
            if place < about.loose
            and isinstance(own, torch.Tensor)
            and own.nbytes <= SMALL_BYTES
            and own.is_contiguous()
        )
        self._storages = {
            own.untyped_storage().data_ptr(): own.untyped_storage()
            for own in self._outputs
            if isinstance(own, torch.Tensor)
        }
        _in_pool.update(list(self._storages))
        del outputs, passed, given  # what they hold would count as held by the user
        self._count = holders()
        self._alone = [
            (storage._cdata, self._count(storage._cdata)) for storage in self._storages.values()
        ]

    def __del__(self) -> None:
        _in_pool.subtract(list(getattr(self, "_storages", ())))

    def suits(self, arguments: Sequence[Any]) -> bool:
        """Whether the inputs that it reads in place are where they were."""
        return all(arguments[place].data_ptr() == address for place, address in self.addresses)

    def held(self) -> bool:
        """Whether anyone holds an output of its last replay."""
        count = self._count
        return any(count(storage) > alone for storage, alone in self._alone)

    def replay(self, arguments: list[Any]) -> list[Any]:
        """Run it. Takes and empties the arguments, as every boxed call does."""
        copy_all(self._rooms, [arguments[place] for place in self._copied])
        self._graph()
        if self._back:
            copy_all(
                [arguments[place] for place, _ in self._back], [room for _, room in self._back]
            )
        outputs = [
            (own.clone() if number in self._loose else own.detach())
            if isinstance(own, torch.Tensor)
            else own.of(arguments)
            if isinstance(own, _OfInput)
            else own
            for number, own in enumerate(self._outputs)
        ]
        arguments.clear()
        if len(outputs) == len(self._order):
            return outputs
        return [outputs[number] for number in self._order]


@dataclass(frozen=True, slots=True)
class _OfInput:
    """An output in the memory of an input: the input itself, or a view."""

    place: int
    sizes: tuple[int, ...] | None = None
    strides: tuple[int, ...] = ()
    offset: int = 0
    """Elements from the input's first one."""
    dtype: torch.dtype | None = None

    def of(self, arguments: Sequence[Any]) -> Any:
        given = arguments[self.place]
        if self.sizes is None:
            return given
        whole = given.detach()
        if self.dtype is not None:
            whole = whole.view(self.dtype)
        return whole.as_strided(self.sizes, self.strides, whole.storage_offset() + self.offset)


def _made_of(output: Any, given: Sequence[Any]) -> Any:
    """How a call's output is made: a tensor of the recording, a part of an input, or a number."""
    if not isinstance(output, torch.Tensor):
        return output
    for place, one in enumerate(given):
        if output is one:
            return _OfInput(place)
    memory = output.untyped_storage().data_ptr()
    for place, one in enumerate(given):
        if isinstance(one, torch.Tensor) and memory and one.untyped_storage().data_ptr() == memory:
            other = output.dtype if output.dtype != one.dtype else None
            start = one.storage_offset() * one.itemsize // output.itemsize
            return _OfInput(
                place,
                tuple(output.shape),
                tuple(output.stride()),
                output.storage_offset() - start,
                other,
            )
    return output.detach()


def _stays(tensor: torch.Tensor, place: int, about: About) -> bool:
    """Whether a recording reads an input where it is."""
    return (
        place in about.in_place
        or isinstance(tensor, torch.nn.Parameter)
        or _in_pool[tensor.untyped_storage().data_ptr()] > 0
    )


_lock = threading.RLock()
"""A recording has one set of outputs: one call at a time."""
_in_pool: Counter[int] = Counter()
"""Addresses of the memory of all recordings' outputs."""


def _fake(arguments: Sequence[Any]) -> bool:
    """Whether the arguments have no memory: all are fake, or none."""
    first = next((argument for argument in arguments if isinstance(argument, torch.Tensor)), None)
    return isinstance(first, FakeTensor)


def _bytes_to_copy(arguments: Sequence[Any], about: About) -> int:
    """Bytes of what a forward saved that a recording could not read in place."""
    saved = ((place, arguments[place]) for place in about.saved)
    return sum(
        one.nbytes
        for place, one in saved
        if isinstance(one, torch.Tensor) and not _stays(one, place, about)
    )


@cache
def holders() -> Callable[[int], int]:
    """Counts who holds a storage, by its `_cdata`. Raises `Missing`, also if views do not count."""
    count: Any = resolve(HOLDERS)
    whole = torch.empty(1)
    storage = whole.untyped_storage()
    before = count(storage._cdata)
    view = whole.detach()
    held = count(storage._cdata)
    del view
    if (held, count(storage._cdata)) != (before + 1, before):
        raise lacking(f"{HOLDERS} counts otherwise")
    return count  # type: ignore[no-any-return]


class Streams:
    """A device's streams: for recording, and of the last replay."""

    _all: dict[int, Streams] = {}

    def __init__(self, index: int) -> None:
        self.device = torch.device("cuda", index)
        self.stream: Any = None
        """On which calls are recorded."""
        self.last: Any = None

    @classmethod
    def of(cls, index: int) -> Streams:
        with _lock:
            return cls._all.setdefault(index, cls(index))

    def capture(self, call: Boxed, arguments: list[Any]) -> tuple[Callable[[], object], list[Any]]:
        """See `Device`."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self.device):
            if self.stream is None:
                self.stream = torch.cuda.Stream(self.device)
            current = torch.cuda.current_stream(self.device)
            self.stream.wait_stream(current)
            with torch.cuda.stream(self.stream):
                try:
                    # Other threads may go on with what a capture must not contain. Without a pool
                    # the graph gets its own.
                    graph.capture_begin(capture_error_mode="thread_local")
                    outputs = list(call(arguments))
                except BaseException:
                    _end(graph)
                    raise
                graph.capture_end()
            current.wait_stream(self.stream)

        def replay() -> None:
            now = torch.cuda.current_stream(self.device)
            if self.last is not None and self.last != now:
                now.wait_stream(self.last)
            self.last = now
            graph.replay()

        return replay, outputs

    def capturing(self) -> bool:
        """See `Device`."""
        return bool(torch.cuda.is_current_stream_capturing())

    def reserved(self) -> int | None:
        """See `Device`."""
        return int(torch.cuda.memory_reserved(self.device))


def _end(graph: Any) -> None:
    """End a capture that failed."""
    try:
        graph.capture_end()
    except RuntimeError:
        return
