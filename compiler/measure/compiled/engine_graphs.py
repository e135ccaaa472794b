"""Graphs that our own engine compiled, with kernels that can be called one by one.

A unit's kernels are private to it, so that calling them has no overhead. For a measurement the unit
is built again with the same flags. Each kernel call then goes through a Python callback, which sees
the pointers, and `measured_again` repeats some of those calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import fx

from tcw.compiler.codegen.launcher.segment import STACK_BYTES, KernelSite
from tcw.compiler.engine.recording import watching
from tcw.compiler.measure.compiled.alone import NotAlone, Step
from tcw.compiler.measure.compiled.redirected import Redirected
from tcw.compiler.measure.compiled.shadows import Shadows, StorageCopy, copied
from tcw.compiler.measure.probes.aten_probe import AtenGraph
from tcw.compiler.measure.rounds.whole_runs import DeviceRun
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.compiled import Compiled, loaded_segments, run_wrapper
from tcw.compiler.runtime.libraries import LibrarySource, library
from tcw.compiler.runtime.python_path import PythonSegment
from tcw.compiler.runtime.store import usable_store
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler, unit_libraries
from tcw.compiler.runtime.unavailable import Unavailable

_HEAD = """
typedef void MeasuredKernel(void* const*, const long*, char*, int*);
typedef void MeasuredCall(
    const char* name, void* kernel, void* const* pointers, long count, const long* sizes,
    long size_count, char* workspace, int* error);
struct MeasuredAgain {
  MeasuredKernel* kernel; void* const* pointers; const long* sizes; char* workspace;
};
extern "C" { MeasuredCall* measured_call; }
"""
_TAIL = """
extern "C" int measured_again(const MeasuredAgain* calls, long count) {{
  alignas(8) int error[8] = {{0}};{stream}
  for (long i = 0; i < count; i++)
    calls[i].kernel(calls[i].pointers, calls[i].sizes, calls[i].workspace, error);
  return *error;
}}
"""
_Observe = ctypes.CFUNCTYPE(
    None,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_long,
    ctypes.POINTER(ctypes.c_long),
    ctypes.c_long,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_int),
)


class _Again(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("kernel", "pointers", "sizes", "workspace")]


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

    def __init__(self, row: _Again, again: Any, alive: tuple[Any, ...]) -> None:
        self.row = row
        self.again = again
        self.alive = alive

    def __call__(self) -> None:
        self.again(ctypes.byref(self.row), 1)


class EngineGraph(Redirected):
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
        found = next(kernel for kernel in artifact.device_kernels if kernel.name == name)
        return _part(artifact.module, found.line, found.count)

    def run(self, arguments: list[Any]) -> Any:
        return self.compiled.call(arguments)

    def capture(self, wanted: Collection[str], shadows: Shadows) -> list[Step]:
        if self.arguments is None:
            raise NotAlone("its graph was not called")
        handle = self._handle()
        memory: list[Any] = []
        steps: list[Step] = []
        failed: list[BaseException] = []

        def observe(
            name: bytes,
            kernel: int,
            pointers: Any,
            count: int,
            sizes: Any,
            size_count: int,
            workspace: int | None,
            error: Any,
        ) -> None:
            try:
                if name.decode() in wanted and not failed:
                    where = _Places(memory, shadows)
                    copies = [where.of(pointers[i]) for i in range(count)]
                    given = [sizes[i] for i in range(size_count)]
                    step = _step(handle, kernel, copies, given, *where.workspace(workspace))
                    step()
                    steps.append(step)
            except BaseException as problem:  # it must not propagate through C
                failed.append(problem)
            _KERNEL(kernel)(pointers, sizes, workspace, error)

        callback = _Observe(observe)
        ctypes.c_void_p.in_dll(handle, "measured_call").value = ctypes.cast(
            callback, ctypes.c_void_p
        ).value
        with torch.no_grad():
            self._call(handle, memory)(copied(self.arguments))
        if failed:
            raise failed[0]
        return [DeviceRun(step) for step in steps] if self._on_gpu else steps

    def together(self, steps: Sequence[Step]) -> Step:
        own = [step.run if isinstance(step, DeviceRun) else step for step in steps]
        calls = [step for step in own if isinstance(step, _Call)]
        rows = (_Again * len(calls))(*(call.row for call in calls))
        again = calls[0].again
        run = partial(_discard, again, rows, len(calls), calls)
        return DeviceRun(run, len(calls)) if self._on_gpu else run

    @property
    def _on_gpu(self) -> bool:
        return self.compiled.artifact.device >= 0

    def calling(
        self, functions: Mapping[str, Any], artifact: Artifact | None = None
    ) -> Callable[[list[Any]], Any]:
        """The graph's callable with these functions in place of its own. `artifact`: with another
        wrapper."""
        artifact, call = artifact or self.compiled.artifact, self.compiled.call
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

    def _handle(self) -> ctypes.CDLL:
        """The library of the observable unit, built unless it is in the cache."""
        artifact = self.compiled.artifact
        text = _HEAD + _observed(artifact.unit, artifact.sites) + _tail(artifact.device)
        return built_unit(self, text)[1]


def built_unit(graph: EngineGraph, text: str) -> tuple[dict[str, Callable[..., Any]], ctypes.CDLL]:
    """(the segments, the library) of a graph's unit with another text, built unless it is in the
    cache. Raises `NotAlone`."""
    artifact, call = graph.compiled.artifact, graph.compiled.call
    found = find_compiler()
    if isinstance(found, NoCompiler):
        raise NotAlone(found.reason)
    unit = LibrarySource(text, artifact.flags, unit_libraries(artifact.libraries))
    store = usable_store()[0]
    try:
        made = library(unit, found, store)
        return loaded_segments(artifact, made.path, found, store, call)[:2]
    except (BuildFailed, OSError, Unavailable) as error:
        raise NotAlone(f"its unit could not be built for a measurement: {error}") from error


def _part(text: str, line: int, count: int) -> str:
    lines = text.split("\n")[line - 1 : line - 1 + count]
    return "\n".join(lines) + "\n"


_KERNEL = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_long),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_int),
)


def _tail(device: int) -> str:
    """What follows the unit's text: calls of its kernels, on the current stream of a GPU."""
    stream = f"\n  stream = launcher->stream({device});" if device >= 0 else ""
    return _TAIL.format(stream=stream)


def _observed(unit: str, sites: Sequence[KernelSite]) -> str:
    """The unit's text, with `measured_call` in place of each kernel call."""
    lines = unit.split("\n")
    for site in sites:
        name = site.function
        sizes = "s, sizeof s / sizeof *s" if site.sizes else "0, 0"
        workspace = "workspace" if site.workspace else "0"
        lines[site.line - 1] = (
            f'    measured_call("{name}", (void*){name}, p, sizeof p / sizeof *p, {sizes}, '
            f"{workspace}, error);"
        )
    return "\n".join(lines)


def _step(
    handle: ctypes.CDLL,
    kernel: int,
    pointers: list[int],
    sizes: list[int],
    workspace: int,
    alive: Any,
) -> _Call:
    table = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
    numbers = (ctypes.c_long * max(len(sizes), 1))(*sizes)
    row = _Again(kernel, ctypes.addressof(table), ctypes.addressof(numbers), workspace)
    return _Call(row, handle.measured_again, (table, numbers, alive))


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
    found: list[EngineGraph] = []

    def watch(graph: str, compiled: Any, module: Any) -> Callable[..., Any]:
        if isinstance(compiled, Compiled):
            made = EngineGraph(graph, compiled, module, keep_arguments)
            found.append(made)
            return made.boxed()
        if left_to_aten is None:
            return compiled.call  # type: ignore[no-any-return]
        left = AtenGraph(graph, compiled)
        left_to_aten.append(left)
        return left.boxed()

    with watching(watch):
        yield found
