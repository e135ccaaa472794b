"""Graphs that our own engine compiled, with kernels that can be called one by one.

For a measurement the unit is built again (`engine_unit`): an observer sees the pointers of each
call, and `probe_again` repeats some of those calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import fx

from tcw.compiler.codegen.launcher.segment import STACK_BYTES
from tcw.compiler.engine.recording import watching
from tcw.compiler.engine.uncompiled import UncompiledGraph
from tcw.compiler.measure.compiled.alone import (
    CompiledGraph,
    NotAlone,
    Shadows,
    Step,
    StorageCopy,
    copied,
)
from tcw.compiler.measure.compiled.engine_unit import ClockedUnit, KernelCall, Observer
from tcw.compiler.measure.rounds.whole_runs import DeviceRun
from tcw.compiler.runtime.compiled import Compiled, run_wrapper
from tcw.compiler.runtime.python_path import PythonSegment


class _Segment(PythonSegment):
    """Records the memory on which it runs."""

    memory: list[Any]

    def _run(self, tensors: list[Any], given: Any, arena: Any) -> int:
        self.memory[:] = [tensor.untyped_storage() for tensor in (*tensors, arena)]
        try:
            return super()._run(tensors, given, arena)
        finally:
            self.memory.clear()


class _Call:
    """A step: one call of a kernel, on copies."""

    def __init__(self, call: KernelCall, again: Any, alive: tuple[Any, ...]) -> None:
        self.call = call
        self.again = again
        self.alive = alive

    def __call__(self) -> None:
        self.again(ctypes.byref(self.call), 1)


class AtenGraph(CompiledGraph):
    """A graph that the engine left to ATen."""

    def __init__(self, graph: str, left: UncompiledGraph) -> None:
        super().__init__(left.call)
        self.graph = graph
        self.left = left
        self.module = left.module


class EngineGraph(CompiledGraph):
    """One graph, as the engine compiled it."""

    def __init__(
        self, graph: str, compiled: Compiled, module: fx.GraphModule, keep_arguments: bool = True
    ) -> None:
        self.graph = graph
        self.compiled = compiled
        self.module = module
        """The lowered graph; its nodes are those of the `/lowered` graph's record."""
        super().__init__(compiled.outermost, keep_arguments)
        self._names = {site.function: None for site in compiled.artifact.sites}

    @property
    def kernels(self) -> Collection[str]:
        return self._names

    def text(self, kernel: str) -> str:
        artifact = self.compiled.artifact
        place = artifact.kernels.get(kernel)
        if place is None:
            return ""
        if place.launches:
            return "".join(f"{self._device_text(name)}\n" for name in place.launches)
        return _part(artifact.unit, place.line, place.count)

    def _device_text(self, name: str) -> str:
        """The text of one of the GPU's kernels."""
        artifact = self.compiled.artifact
        device_kernel = next(kernel for kernel in artifact.device_kernels if kernel.name == name)
        return _part(artifact.module, device_kernel.line, device_kernel.count)

    def run(self, arguments: list[Any]) -> Any:
        return self.compiled.call(arguments)

    def capture(self, wanted: Collection[str], shadows: Shadows) -> list[Step]:
        if self.arguments is None:
            raise NotAlone("its graph was not called")
        artifact = self.compiled.artifact
        unit = ClockedUnit(artifact, self.compiled.call, repeats=True)
        memory: list[Any] = []
        steps: list[Step] = []
        failed: list[BaseException] = []

        def observe(site: int, over: int, made: Any, _: Any) -> None:
            try:
                if not over and artifact.sites[site].function in wanted and not failed:
                    where = _Places(memory, shadows)
                    step = _step(unit.handle, made.contents, where)
                    step()
                    steps.append(step)
            except BaseException as problem:  # it must not propagate through C
                failed.append(problem)

        callback = Observer(observe)
        unit.observe(callback)
        try:
            with torch.no_grad():
                self._call(unit.handle, memory)(copied(self.arguments))
        finally:
            unit.observe(None)
        if failed:
            raise failed[0]
        return [DeviceRun(step) for step in steps] if self._on_gpu else steps

    def together(self, steps: Sequence[Step]) -> Step:
        own = [step.run if isinstance(step, DeviceRun) else step for step in steps]
        calls = [step for step in own if isinstance(step, _Call)]
        rows = (KernelCall * len(calls))(*(call.call for call in calls))
        again = calls[0].again
        run = partial(_discard, again, rows, len(calls), calls)
        return DeviceRun(run, len(calls)) if self._on_gpu else run

    @property
    def _on_gpu(self) -> bool:
        return self.compiled.artifact.device >= 0

    def calling(self, functions: Mapping[str, Any]) -> Callable[[list[Any]], Any]:
        """The graph's callable with these functions in place of its own."""
        artifact, call = self.compiled.artifact, self.compiled.call
        if artifact.entry:
            whole: Callable[[list[Any]], Any] = functions.get(artifact.entry, call)
            return whole
        return run_wrapper(artifact, {**call.__globals__, **functions})

    def _call(self, handle: ctypes.CDLL, memory: list[Any]) -> Callable[[list[Any]], Any]:
        """The graph's callable, on the observable unit."""
        functions: dict[str, Any] = {}
        for entry in self.compiled.artifact.segments:
            segment = _Segment(handle, entry)
            segment.memory = memory
            functions[entry.name] = segment
        return self.calling(functions)


def _part(text: str, line: int, count: int) -> str:
    lines = text.split("\n")[line - 1 : line - 1 + count]
    return "\n".join(lines) + "\n"


def _step(handle: ctypes.CDLL, made: KernelCall, where: _Places) -> _Call:
    """A call like this one, on copies of its memory."""
    pointers = [where.of(made.pointers[i]) for i in range(made.count)]
    table = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
    sizes = (ctypes.c_long * max(made.size_count, 1))(*made.sizes[: made.size_count])
    workspace, room = where.workspace(made.workspace)
    call = KernelCall(made.kernel, table, sizes, workspace, made.count, made.size_count)
    return _Call(call, handle.probe_again, (table, sizes, room))


def _discard(again: Any, rows: Any, count: int, alive: list[_Call]) -> None:
    again(rows, count)


_LINE = 64
"""Alignment of a workspace in bytes."""


class _Places:
    """Maps addresses of a real call to the current copies."""

    def __init__(self, memory: list[Any], shadows: Shadows) -> None:
        self.memory = memory
        self.shadows = shadows
        self._known: dict[int, StorageCopy] = {}

    def of(self, address: int | None) -> int:
        """The address in the copy; 0 for a null address."""
        if not address:
            return 0
        found = self._copy_of(address)
        if found is None:
            raise NotAlone("it works on memory that is not one of its graph's buffers")
        return found

    def workspace(self, address: int | None) -> tuple[int, Any]:
        """Where a kernel's partial sums may go, and an object that must live as long. If the
        workspace is on the stack of the kernel's caller, it is invalid after the call, so memory is
        allocated."""
        found = self._copy_of(address) if address else 0
        if found is not None:
            return found, None
        room = torch.empty(STACK_BYTES + _LINE, dtype=torch.uint8)
        return room.data_ptr() + -room.data_ptr() % _LINE, room

    def _copy_of(self, address: int) -> int | None:
        for storage in self.memory:
            start = storage.data_ptr()
            if start <= address < start + max(storage.nbytes(), 1):
                shadow = self._known.get(start)
                if shadow is None:
                    shadow = self._known[start] = self.shadows.of(storage)
                return shadow.address + address - int(start)
        return None


@contextmanager
def engine_graphs(
    keep_arguments: bool = True, left_to_aten: list[AtenGraph] | None = None
) -> Iterator[list[EngineGraph]]:
    """The graphs that our engine compiles inside the block.

    `keep_arguments`: copy the arguments of each graph's first call, so that its kernels can run
    alone. `left_to_aten` collects the graphs that the engine could not compile.
    """
    graphs: list[EngineGraph] = []

    def watch(graph: str, compiled: Any, module: Any) -> Callable[..., Any]:
        if isinstance(compiled, Compiled):
            made = EngineGraph(graph, compiled, module, keep_arguments)
            graphs.append(made)
            return made.boxed()
        if left_to_aten is None:
            return compiled.call  # type: ignore[no-any-return]
        left = AtenGraph(graph, compiled)
        left_to_aten.append(left)
        return left.boxed()

    with watching(watch):
        yield graphs
