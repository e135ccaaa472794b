"""Kernels of either engine, each ready to be run alone on the data of one real call.

`captured` runs a compiled graph once with real arguments. Before each wanted kernel, the memory
that it works on is copied. The result can be called repeatedly: one kernel, or several in sequence
that do one piece of work. `whole` does the same for a graph.

A shadow is the copy of a whole storage: tensors that share memory in the real call share it here.
The next captured step finds what the previous one wrote, provided that nothing else wrote there in
between. Otherwise the next step gets a new shadow with what it really read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from tcw.compiler.measure.calls.runs import Prepared

LIMIT = 8 << 30
"""The maximum size in bytes of all copies of one capture."""

Boxed = Callable[[list[Any]], Any]
"""Takes its arguments in a list, which it empties."""

Step = Callable[[], object]
"""One call of one kernel, on the copies; a `DeviceRun` if a GPU runs it."""


class TooMuchMemory(Exception):
    """A call works on more memory than a measurement copies."""


def bytes_of(storage: Any) -> torch.Tensor:
    """A storage as one flat tensor of bytes, on the same memory."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


class StorageCopy:
    """One storage's copy."""

    def __init__(self, storage: Any) -> None:
        real = bytes_of(storage)
        self.data = real.clone()
        """The memory that the steps work on."""
        self.initial = real.clone()
        """The content that the first step found."""

    @property
    def address(self) -> int:
        return int(self.data.data_ptr())

    def restore(self) -> None:
        self.data.copy_(self.initial)


class Shadows:
    """The copies of one capture."""

    def __init__(self) -> None:
        self.all: list[StorageCopy] = []
        self._of: dict[int, StorageCopy] = {}
        self._bytes = 0

    def of(self, storage: Any) -> StorageCopy:
        """The copy with the current content of this storage. Raises `TooMuchMemory`."""
        address = storage.data_ptr()
        known = self._of.get(address)
        if (
            known is not None
            and known.data.numel() == storage.nbytes()
            and torch.equal(known.data, bytes_of(storage))
        ):
            return known
        self._bytes += 2 * storage.nbytes()
        if self._bytes > LIMIT:
            raise TooMuchMemory(f"its buffers are more than {LIMIT >> 30} GB")
        made = self._of[address] = StorageCopy(storage)
        self.all.append(made)
        return made

    def tensor(self, real: torch.Tensor) -> torch.Tensor:
        """A tensor like `real`, on the copy of its storage."""
        shadow = self.of(real.untyped_storage())
        made = torch.empty(0, dtype=real.dtype, device=real.device)
        return made.set_(
            shadow.data.untyped_storage(), real.storage_offset(), real.size(), real.stride()
        )

    def value(self, value: Any) -> Any:
        """As `tensor`, for any argument: non-tensors are returned unchanged."""
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            return self.tensor(value.detach())
        return value


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Arguments of a call, stored for repeated calls: they share memory as the originals do."""
    shadows = Shadows()
    return [shadows.value(value) for value in arguments]


class NotAlone(Exception):
    """These kernels cannot be run by themselves; the message says why."""


class CompiledGraph:
    """A graph that an engine compiled. A measurement can take over AOTAutograd's calls of it; the
    overhead is one attribute lookup per call."""

    def __init__(self, generated: Boxed, keep_arguments: bool = False) -> None:
        self.generated = generated
        """The graph as the engine compiled it."""
        self.call = self._first_call if keep_arguments else generated
        """The current target of a call of the graph."""
        self.arguments: list[Any] | None = None
        """Copies of the first call's arguments, if they are kept."""

    @property
    def kernels(self) -> Collection[str]:
        """Names of the functions that it calls, without library calls."""
        return ()

    def text(self, kernel: str) -> str:
        """A kernel's text, as in a recording's `Kernel.text`; "" if unknown."""
        return ""

    def capture(self, wanted: Collection[str], shadows: Shadows) -> list[Step]:
        """One call, in which every call of a wanted kernel becomes a step. Raises `NotAlone`."""
        raise NotImplementedError

    def together(self, steps: Sequence[Step]) -> Step:
        """Several steps as one, with as little overhead between them as possible."""
        raise NotImplementedError

    def run(self, arguments: list[Any]) -> Any:
        """One call, as the engine's own caller makes it. Consumes the list."""
        return self.generated(arguments)

    def boxed(self) -> Boxed:
        """The callable for AOTAutograd."""

        def call(arguments: list[Any]) -> Any:
            return self.call(arguments)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    @contextmanager
    def replaced(self, run: Boxed) -> Iterator[None]:
        """Inside the block, AOTAutograd's calls of the graph go to `run`."""
        before = self.call
        self.call = run
        try:
            yield
        finally:
            self.call = before

    def _first_call(self, arguments: list[Any]) -> Any:
        self.arguments = copied(arguments)
        self.call = self.generated
        return self.generated(arguments)


@dataclass
class Replay:
    """Kernels that do one piece of work, repeatable."""

    run: Step
    restored: list[StorageCopy]
    """Memory that a second run would find changed by the first."""
    shadows: Shadows
    """All memory that it works on: steps may hold nothing but addresses in it."""

    def prepare(self) -> Prepared:
        """Restore what the last run changed, if that matters. Not part of the time."""
        for shadow in self.restored:
            shadow.restore()
        return self.run


def captured(graph: CompiledGraph, wanted: Collection[str]) -> Replay:
    """The wanted kernels of a graph, in the order of their calls.

    Raises `NotAlone` and `tcw.compiler.measure.compiled.alone.TooMuchMemory`.
    """
    missing = [name for name in wanted if name not in graph.kernels]
    if missing:
        raise NotAlone(f"{missing[0]} is not a function that can be called by itself")
    shadows = Shadows()
    steps = graph.capture(wanted, shadows)
    if not steps:
        raise NotAlone("the call did not run them")
    run = graph.together(steps)
    return Replay(run, _not_repeatable(run, shadows), shadows)


def _not_repeatable(run: Step, shadows: Shadows) -> list[StorageCopy]:
    """Copies that differ after a second run: a kernel reads what it overwrites."""
    once = [shadow.data.clone() for shadow in shadows.all]
    run()
    return [
        shadow
        for shadow, first in zip(shadows.all, once, strict=True)
        if not torch.equal(shadow.data, first)
    ]


def whole(graph: CompiledGraph) -> Replay:
    """A graph that can be called repeatedly; arguments that it changes are restored.

    Raises `NotAlone` and `tcw.compiler.measure.compiled.alone.TooMuchMemory`.
    """
    shadows, arguments = arguments_of(graph)

    def run() -> Any:
        with torch.no_grad():
            return graph.run(list(arguments))

    run()
    changed = [copy for copy in shadows.all if not torch.equal(copy.data, copy.initial)]
    return Replay(run, changed, shadows)


def arguments_of(graph: CompiledGraph) -> tuple[Shadows, list[Any]]:
    """Copies of the arguments of its first call, and their memory. Raises `NotAlone`."""
    if graph.arguments is None:
        raise NotAlone("its graph was not called")
    shadows = Shadows()
    return shadows, [shadows.value(value) for value in graph.arguments]
