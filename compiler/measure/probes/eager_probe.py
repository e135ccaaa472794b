"""The eager call, operation by operation: what each ATen operation is, and what it takes.

A `TorchDispatchMode` sees operations below autograd, where each is one call of ATen; in a backward,
too, since autograd's threads run with the modes of the thread that called it
(`at::ThreadLocalState`). One call is described; further ones are only timed, and have to run the
same operations in the same order.

    probe = EagerProbe(twin, call=1)
    with probe.describing():
        with probe.during("forward"):
            ...
    for clock in clocks:
        with probe.timing(clock): ...
        readings.append(clock.readings())
    operations = with_times(probe.operations, readings)

Keys of readings are indices into `probe.operations`.

What a reading holds: from just before the operation is called to just after it has returned, so
its way from Python through torch's dispatcher and the making of its result are in it. What that
way takes for an operation that does nothing is `call_cost()`: a clock is given it to take off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from statistics import median
from types import FrameType
from typing import Any, Literal, NamedTuple

import msgspec
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compiler.graphs.tensors import tensor_meta
from compiler.graphs.text import short_type
from compiler.measure.probes.clock import Clock, Reading
from compiler.measure.probes.sites import ModulePaths, caller, stack_above
from compiler.measure.speed import spread
from compiler.measure.work import work_of
from compiler.trace.records import Location, TensorMeta, Timed
from compiler.trace.records.profile import CallPhase, EagerOperation

OperationPart = Literal["model", "loss", "gradients", "optimizer"]

_MAX_ARGUMENTS = 400
_MAX_ITEMS = 16


class EagerProbe:
    """One eager call: described once, timed often."""

    def __init__(self, model: Callable[..., Any], call: int, first: int = 0) -> None:
        self.call = call
        self.first = first
        """Number of the first operation's id."""
        self.operations: list[EagerOperation] = []
        """Drafts: all that is known before anything is timed."""
        self.differs = ""
        """How the last timed call went another way than the described one; "" where it did not.
        Its readings say nothing then."""
        self.paths = ModulePaths(model)
        self.functions: list[Any] = []
        """The `OpOverload` of each operation."""
        self.phase: CallPhase = ""
        self.part: OperationPart = "model"
        self.outside: FrameType | None = None
        """The frame that runs the call: it and what is above it are no user's lines."""

    @contextmanager
    def during(self, phase: CallPhase, part: OperationPart = "model") -> Iterator[None]:
        """What runs inside is that phase; inside of `describing` or `timing`. Who enters it is no
        user."""
        before = self.phase, self.part, self.outside
        self.phase, self.part, self.outside = phase, part, caller(2)
        try:
            yield
        finally:
            self.phase, self.part, self.outside = before

    @contextmanager
    def describing(self) -> Iterator[None]:
        """The call inside is described: `operations` are its."""
        self.operations = []
        self.functions = []
        self.outside = caller(2)
        try:
            with self.paths.following(), _Describing(self):
                yield
        finally:
            self.outside = None

    @contextmanager
    def timing(self, clock: Clock) -> Iterator[None]:
        """The call inside starts and stops the clock around each operation."""
        mode = _Timing(self.functions, clock)
        try:
            with mode:
                yield
        finally:
            self.differs = mode.difference()


class _Mode(TorchDispatchMode):  # type: ignore[misc]
    """Sees higher-order operators as one operation each; what the model compiles itself
    (`flex_attention`) is compiled as ever, and runs unseen."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True


class _Describing(_Mode):
    def __init__(self, probe: EagerProbe) -> None:
        super().__init__()
        self._probe = probe
        self._of_node: dict[int, EagerOperation] = {}
        """By autograd's sequence number: the operation that made the node."""
        self._modules_of: dict[tuple[Location, Any], dict[str, None]] = {}
        """Of a line's operations in the forward."""
        self._number = _next_number()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        probe = self._probe
        described = Described()
        # before the call: it may resize or move what it is given
        given, named = described(args), described(kwargs)
        arguments = format_call(args, kwargs)
        result = func(*args, **kwargs)
        results = _results(result)
        outputs = tuple(meta for meta in results if meta is not None)
        work = work_of(func, given, named, results)
        place = self._place(func, stack_above(caller(), probe.outside))
        operation = EagerOperation(
            id=f"e{probe.first + len(probe.operations)}",
            call=probe.call,
            operation=str(func),
            phase=probe.phase,
            arguments=arguments,
            inputs=described.tensors(),
            outputs=outputs,
            launches=1 if work.touches_memory else 0,
            read_bytes=work.read_bytes,
            write_bytes=work.write_bytes,
            flops=work.flops,
            location=place.stack[-1] if place.stack else None,
            stack=place.stack if len(place.stack) > 1 else (),
            module=place.module,
            part=place.part,
            of=place.of,
        )
        number = _next_number()
        if number != self._number:  # its node took the number before
            self._number = number
            self._of_node[number - 1] = operation
        probe.operations.append(operation)
        probe.functions.append(func)
        return result

    def _place(self, func: Any, stack: tuple[Location, ...]) -> _Place:
        """Where the operation that runs now belongs."""
        probe = self._probe
        module = probe.paths.path
        node = torch._C._current_autograd_node()
        if node is None:
            if stack:
                self._modules_of.setdefault((stack[-1], func), {})[module] = None
            elif probe.phase == "backward" and probe.part == "model":
                return _Place(part="loss")  # the gradient that the backward starts from
            return _Place(stack, module, probe.part)
        if "AccumulateGrad" in node.name():
            return _Place(part="gradients")
        forward = self._of_node.get(node._sequence_nr())
        if forward is None:
            return _Place(stack, module, probe.part)
        if not stack:
            stack = forward.stack or ((forward.location,) if forward.location else ())
            return _Place(stack, forward.module, forward.part, forward.id)
        there = self._modules_of.get((stack[-1], func))
        if there is None:  # the backward of a custom function
            return _Place(stack, module or forward.module, forward.part, forward.id)
        # a checkpointed function is computed again
        return _Place(stack, module or nearest(forward.module, there), forward.part)


class _Place(NamedTuple):
    stack: tuple[Location, ...] = ()
    module: str = ""
    part: OperationPart = "model"
    of: str = ""


def nearest(path: str, others: Iterable[str]) -> str:
    """Of some modules, the one that has most in common with a path."""
    parts = path.split(".")

    def common(other: str) -> tuple[int, int]:
        names = other.split(".") if other else []
        pairs = zip(parts, names, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), -len(names)

    return max(others, key=common)


class _Timing(_Mode):
    """As little as can be: the sequence is compared, and the clock started and stopped."""

    def __init__(self, expected: Sequence[Any], clock: Clock) -> None:
        super().__init__()
        self._expected = expected
        self._start, self._stop = clock.start, clock.stop
        self._next = 0
        self._difference = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if composite(func):
            with self:
                return func.decompose(*args, **(kwargs or {}))
        key = self._next
        self._next = key + 1
        if not self._difference and (key >= len(self._expected) or self._expected[key] is not func):
            before = str(self._expected[key]) if key < len(self._expected) else "nothing"
            self._difference = f"operation {key} was {before} when described, and is {func}"
        if kwargs:
            self._start(key)
            result = func(*args, **kwargs)
            self._stop(key)
        else:
            self._start(key)
            result = func(*args)
            self._stop(key)
        return result

    def difference(self) -> str:
        """How this call differs from the described one."""
        if not self._difference and self._next != len(self._expected):
            return f"{self._next} operations, and {len(self._expected)} when described"
        return self._difference


def _next_number() -> int:
    """The sequence number that autograd gives to its next node."""
    return int(torch.autograd._get_sequence_nr())


_composite: dict[Any, bool] = {}


def composite(func: Any) -> bool:
    """Whether an operation that reached a mode is made of others, and of nothing else.

    Autograd takes these apart before a mode sees them; where there is no autograd, as in inference
    mode, they arrive whole.
    """
    known = _composite.get(func)
    if known is None:
        known = _composite[func] = _is_composite(func)
    return known


def _is_composite(func: Any) -> bool:
    if not isinstance(func, torch._ops.OpOverload):  # a higher-order operator: one operation
        return False
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    name = func.name()
    return bool(
        has(name, "CompositeImplicitAutograd") and not has(name, "CPU") and not has(name, "CUDA")
    )


class Described:
    """Arguments with tensors as `TensorMeta`: one object for one tensor, however often it is given.

    Call it with the arguments of one operation.
    """

    def __init__(self) -> None:
        self._known: dict[int, TensorMeta | None] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._known:
                self._known[id(value)] = tensor_meta(value)
            return self._known[id(value)]
        if isinstance(value, (list, tuple)):
            return [self(item) for item in value]
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        return value

    def tensors(self) -> tuple[TensorMeta, ...]:
        """Those that were met, in order, each once."""
        return tuple(meta for meta in self._known.values() if meta is not None)


def _results(value: Any) -> list[TensorMeta | None]:
    """What an operation returned, lists of tensors taken apart; None for what is no tensor."""
    if isinstance(value, (list, tuple)):
        return [meta for item in value for meta in _results(item)]
    return [tensor_meta(value)]


def format_value(value: Any) -> str:
    """One argument: tensors as `f32[4, 128]`."""
    if isinstance(value, torch.Tensor):
        return short_type(value)
    if isinstance(value, (list, tuple)):
        items = [format_value(item) for item in value[:_MAX_ITEMS]]
        if len(value) > _MAX_ITEMS:
            items.append(f"… {len(value) - _MAX_ITEMS} more")
        return f"[{', '.join(items)}]"
    if isinstance(value, str):
        return repr(value[:80])
    try:
        return str(value)[:80]
    except Exception:
        return f"<{type(value).__name__}>"


def format_call(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """`f32[512, 64], None, dim=-1`, cut at 400 characters."""
    parts = [format_value(value) for value in args]
    parts += [f"{name}={format_value(value)}" for name, value in kwargs.items()]
    text = ", ".join(parts)
    return text if len(text) <= _MAX_ARGUMENTS else text[: _MAX_ARGUMENTS - 1] + "…"


def with_times(
    operations: Sequence[EagerOperation], rounds: Sequence[Sequence[Reading]]
) -> list[EagerOperation]:
    """The drafts with what the rounds read: those of calls that did not differ."""
    by_key: dict[int, list[Reading]] = {}
    for readings in rounds:
        for reading in readings:
            by_key.setdefault(reading.key, []).append(reading)
    return [_with_time(operation, by_key.get(key, [])) for key, operation in enumerate(operations)]


def _with_time(operation: EagerOperation, readings: list[Reading]) -> EagerOperation:
    if not readings:
        return operation
    changes: dict[str, Any] = {"time": timed([one.ns for one in readings])}
    host = [one.host_ns for one in readings if one.host_ns is not None]
    if host:
        changes["host"] = timed(host)
        changes["launches"] = int(median(one.launches for one in readings))
        changes["kernels"] = readings[-1].kernels
    return msgspec.structs.replace(operation, **changes)


def timed(nanoseconds: Sequence[int]) -> Timed:
    """Median and max(3 MAD, 1%) of readings, in seconds."""
    seconds = [ns / 1e9 for ns in nanoseconds]
    middle = median(seconds)
    return Timed(median=middle, spread=max(3 * spread(seconds), 0.01 * middle), runs=len(seconds))


def call_cost(tries: int = 2000) -> int:
    """Nanoseconds from Python to an operation that does nothing and back, with a start and a stop
    of a host clock around it: what a reading holds beyond the operation itself."""
    nothing = torch.ops.aten.is_same_size.default
    one = torch.empty(1)
    args = (one, one)
    read = time.perf_counter_ns
    found = []
    for _ in range(tries):
        start = read()
        nothing(*args)
        found.append(read() - start)
    return sorted(found)[tries // 2]
