"""The eager call, operation by operation: what each ATen operation is, and its time.

A `TorchDispatchMode` sees operations below autograd, where each is one call of ATen; in a backward
too, because autograd's threads run with the modes of the thread that called it
(`at::ThreadLocalState`). One call is described. Further calls are only timed, and must run the same
operations in the same order.

    probe = EagerProbe(twin, call=1)
    with probe.describing():
        with probe.during("forward"):
            ...
    for clock in clocks:
        with probe.timing(clock): ...

Keys of readings are indices into `probe.operations`.

A reading lasts from just before the operation is called to just after it has returned, so it
includes the way from Python through torch's dispatcher and the creation of the result.
`call_cost()` is that overhead for an operation that does nothing, for a clock to subtract.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from threading import get_ident
from types import FrameType
from typing import Any, Literal, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tcw.compiler.control.hooks import Hook
from tcw.compiler.graphs.tensors import tensor_meta
from tcw.compiler.graphs.text import short_type
from tcw.compiler.measure.probes.clock import Clock
from tcw.compiler.measure.probes.sites import ModulePaths, caller, stack_above
from tcw.compiler.measure.work.operations import work_of
from tcw.compiler.trace.records import Location, TensorMeta
from tcw.compiler.trace.records.profile import CallPhase, EagerOperation

OperationPart = Literal["model", "loss", "gradients", "optimizer"]
_MAX_ARGUMENTS = 400
_MAX_ITEMS = 16

HOOK = Hook(
    name="eager operations",
    offers="profile: each operation of an eager call, and of its backward",
    needs=(
        "torch._C:_current_autograd_node",
        "torch._C:_dispatch_has_kernel_for_dispatch_key",
        "torch.autograd:_get_sequence_nr",
        "torch.utils._python_dispatch:TorchDispatchMode",
    ),
    test="measure/probes/test_eager_probe.py",
)


class EagerProbe:
    """One eager call: described once, timed often."""

    def __init__(self, model: Callable[..., Any], call: int) -> None:
        self.call = call
        self.operations: list[EagerOperation] = []
        """Drafts: everything known before anything is timed."""
        self.differs = ""
        """How a timed call deviated from the described one; "" if none did. Its readings are then
        meaningless."""
        self.paths = ModulePaths(model)
        self.functions: list[Any] = []
        """The `OpOverload` of each operation."""
        self.phase: CallPhase = ""
        self.part: OperationPart = "model"
        self.outside: FrameType | None = None
        """The frame that runs the call. It and the frames above it are not the user's."""

    @contextmanager
    def during(self, phase: CallPhase, part: OperationPart = "model") -> Iterator[None]:
        """Mark what runs inside as this phase; use within `describing` or `timing`. The caller's
        frame does not count as the user's."""
        before = self.phase, self.part, self.outside
        self.phase, self.part, self.outside = phase, part, caller(2)
        try:
            yield
        finally:
            self.phase, self.part, self.outside = before

    @contextmanager
    def describing(self) -> Iterator[None]:
        """Describe the call inside: sets `operations`."""
        self.operations, self.functions, self.differs = [], [], ""
        self.outside = caller(2)
        try:
            with self.paths.following(), _Describing(self):
                yield
        finally:
            self.outside = None

    @contextmanager
    def timing(self, clock: Clock) -> Iterator[None]:
        """Start and stop the clock around each operation of the call inside."""
        mode = _Timing(self.functions, clock)
        try:
            with mode:
                yield
        finally:
            self.differs = self.differs or mode.difference()


class ModeOfAll(TorchDispatchMode):  # type: ignore[misc]
    """Sees higher-order operators as one operation each. What the model compiles itself
    (`flex_attention`) is compiled as usual, and runs unseen."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True


class _Describing(ModeOfAll):
    def __init__(self, probe: EagerProbe) -> None:
        super().__init__()
        self._probe = probe
        self._of_node: dict[int, list[EagerOperation]] = {}
        """Autograd's sequence number -> the operations that created the node. Each thread counts by
        itself, so a region that a GPU's thread recomputes may use numbers again."""
        self._modules_of: dict[tuple[Location, Any], dict[str, None]] = {}
        """Modules of a line's operations in the forward."""
        self._numbers = {get_ident(): _next_number()}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if marks(func):
            return func(*args, **kwargs)
        if composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        probe = self._probe
        described = Described()
        # before the call, which may resize or move its arguments
        given, named = described(args), described(kwargs)
        arguments = format_call(args, kwargs)
        result = func(*args, **kwargs)
        results = results_of(result)
        outputs = tuple(meta for meta in results if meta is not None)
        work = work_of(func, given, named, results)
        place = self._place(func, stack_above(caller(), probe.outside))
        operation = EagerOperation(
            id=f"e{len(probe.operations)}",
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
        self._note_node(operation)
        probe.operations.append(operation)
        probe.functions.append(func)
        return result

    def _note_node(self, operation: EagerOperation) -> None:
        """Store the operation by the sequence number of its autograd node, if it created one."""
        thread, number = get_ident(), _next_number()
        if number != self._numbers.setdefault(thread, number):  # its node took the previous number
            self._numbers[thread] = number
            self._of_node.setdefault(number - 1, []).append(operation)

    def _forward_of(self, node: Any) -> EagerOperation | None:
        """The operation that created an autograd node."""
        operations = self._of_node.get(node._sequence_nr(), [])
        like = [operation for operation in operations if made_by(node.name(), operation.operation)]
        return next(reversed(like or operations), None)

    def _place(self, func: Any, stack: tuple[Location, ...]) -> _Place:
        """Where the current operation belongs."""
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
        forward = self._forward_of(node)
        if forward is None:
            return _Place(stack, module, probe.part)
        if not stack:
            stack = forward.stack or ((forward.location,) if forward.location else ())
            return _Place(stack, forward.module, forward.part, forward.id)
        there = self._modules_of.get((stack[-1], func))
        if there is None:  # the backward of a custom function
            return _Place(stack, module or forward.module, forward.part, forward.id)
        # a checkpointed function is recomputed
        return _Place(stack, module or nearest(forward.module, there), forward.part)


class _Place(NamedTuple):
    stack: tuple[Location, ...] = ()
    module: str = ""
    part: OperationPart = "model"
    of: str = ""


def made_by(node: str, operation: str) -> bool:
    """Whether an autograd node (`AddmmBackward0`) is named after an operation
    (`aten.addmm.default`), as in tools/autograd/gen_autograd.py."""
    name = operation.split(".")[1] if operation.count(".") > 1 else operation
    return node.partition("Backward")[0].lower() == name.replace("_", "").lower()


def nearest(path: str, others: Iterable[str]) -> str:
    """The module path with the longest prefix in common with `path`."""
    parts = path.split(".")

    def common(other: str) -> tuple[int, int]:
        names = other.split(".") if other else []
        pairs = zip(parts, names, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), -len(names)

    return max(others, key=common)


class _Timing(ModeOfAll):
    """Does as little as possible: compares the sequence, and starts and stops the clock."""

    def __init__(self, expected: Sequence[Any], clock: Clock) -> None:
        super().__init__()
        self._expected = expected
        self._start, self._stop = clock.start, clock.stop
        self._next = 0
        self._difference = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if marks(func):
            return func(*args, **(kwargs or {}))
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
    """The sequence number that autograd will give its next node."""
    return int(torch.autograd._get_sequence_nr())


def marks(func: Any) -> bool:
    """Whether an operation only names a span for a profiler, as `record_function` and each
    optimizer's step do: it computes nothing."""
    return getattr(func, "namespace", "") == "profiler"


@cache
def composite(func: Any) -> bool:
    """Whether an operation that reached a mode consists only of other operations.

    Autograd decomposes these before a mode sees them. Without autograd, as in inference mode, they
    arrive whole.
    """
    if not isinstance(func, torch._ops.OpOverload):  # a higher-order operator: one operation
        return False
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    name = func.name()
    return bool(
        has(name, "CompositeImplicitAutograd") and not has(name, "CPU") and not has(name, "CUDA")
    )


def call_cost(tries: int = 2000) -> int:
    """Nanoseconds from Python to an operation that does nothing and back, including a host clock's
    start and stop: a reading's overhead beyond the operation itself."""
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


class Described:
    """Arguments with tensors as `TensorMeta`: one object per tensor, however often it is passed.

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
        """The tensors seen so far: distinct, in order."""
        return tuple(meta for meta in self._known.values() if meta is not None)


def results_of(value: Any) -> list[TensorMeta | None]:
    """The results of an operation, with lists of tensors flattened; None for a non-tensor."""
    if isinstance(value, (list, tuple)):
        return [meta for item in value for meta in results_of(item)]
    return [tensor_meta(value)]


def format_value(value: Any) -> str:
    """One argument as text: tensors as `f32[4, 128]`."""
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
    """`f32[512, 64], None, dim=-1`, truncated to 400 characters."""
    parts = [format_value(value) for value in args]
    parts += [f"{name}={format_value(value)}" for name, value in kwargs.items()]
    text = ", ".join(parts)
    return text if len(text) <= _MAX_ARGUMENTS else text[: _MAX_ARGUMENTS - 1] + "…"
