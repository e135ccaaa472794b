"""Memory: what is allocated, reused and freed at each step of the generated wrapper.

torch/_inductor/codegen/wrapper.py keeps the wrapper as a list of lines; `memory_plan_reuse` turns
allocations into reuses if a freed buffer fits. The resulting list is what torch prints. It is read
here, not planned again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from tcw.compiler.control.hooks import RecordingHook, Uninstall, around_call
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.inductor.generation import Generation, generations
from tcw.compiler.inductor.lowered_graphs import lowering_of
from tcw.compiler.trace.records import Buffer, MemoryPlan

_CALLS = ("ExternKernelOutLine", "ExternKernelAllocLine", "ExternKernelMultiOutLine")


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    safely = Safely(recorder, HOOK.name)

    @contextmanager
    def planning(wrapper: Any, *_: Any, **__: Any) -> Iterator[None]:
        inplace = {id(line) for line in wrapper.lines if type(line).__name__ == "ReuseLine"}
        yield
        safely(_record, recorder, wrapper, inplace)

    return around_call(PythonWrapperCodegen, "memory_plan_reuse", planning)


@dataclass
class WrapperReading:
    """The state of reading a wrapper's lines in order."""

    steps: list[str] = field(default_factory=list)
    lives: dict[str, Buffer] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    owned: dict[str, int] = field(default_factory=dict)
    """Bytes of each block of memory allocated now, by the buffer that holds it."""
    peak: int = 0

    @property
    def step(self) -> int:
        """The next step."""
        return len(self.steps)

    def begin(self, name: str, size: int | None, **more: Any) -> None:
        self.lives[name] = Buffer(name, size, self.step, self.step, **more)
        self.ended.discard(name)

    def change(self, name: str, **changes: Any) -> None:
        self.lives[name] = structs.replace(self.lives[name], **changes)

    def own(self, name: str, size: int) -> None:
        self.owned[name] = size
        self.peak = max(self.peak, sum(self.owned.values()))

    def end(self, name: str, last: int | None = None) -> None:
        """A buffer is read for the last time; without `last` by the previous step."""
        life = self.lives.get(name)
        if life is not None and name not in self.ended:
            self.ended.add(name)
            self.change(name, last=max(life.first, self.step - 1) if last is None else last)


def _record(recorder: Recorder, wrapper: Any, inplace: set[int]) -> None:
    from torch._inductor.virtualized import V

    graph = V.graph
    lowering = lowering_of(recorder, graph)
    reading = WrapperReading()
    for name, value in graph.graph_inputs.items():
        size = _bytes(graph, value)
        if size is not None or hasattr(value, "get_layout"):
            reading.begin(name, size, kind="input")
    generation = generations.stack[-1] if generations.stack else None
    for index, line in enumerate(wrapper.lines):
        _call(reading, generation, wrapper, index, line, graph)
        _memory(reading, line, graph, inplace)
    end_lives(reading, graph)
    lives = reading.lives.values()
    known = all(life.bytes is not None for life in lives if life.kind != "input")
    recorder.emit(
        MemoryPlan(
            graph=lowering.id,
            steps=tuple(reading.steps),
            buffers=tuple(
                structs.replace(life, label=_label(life.name, graph, lowering.labels))
                for life in lives
            ),
            peak_bytes=reading.peak if known else None,
            without_reuse_bytes=_peak_without_reuse(reading) if known else None,
        )
    )


def _call(
    reading: WrapperReading,
    generation: Generation | None,
    wrapper: Any,
    index: int,
    line: Any,
    graph: Any,
) -> None:
    """Count a step if the line starts a kernel or a library call."""
    kind = type(line).__name__
    calls_kernel = kind == "KernelCallLine"
    draft = None
    if generation is not None:
        named = generation.by_name.get(line.kernel_name) if calls_kernel else None
        draft = generation.calls.get((id(wrapper), index), named)
    if draft is not None:
        draft.steps.append(reading.step)
        reading.steps.append(f"{draft.id} {draft.label}")
    elif calls_kernel:
        reading.steps.append(line.kernel_name)
    elif generation is None and kind in _CALLS:
        reading.steps.append(str(line.node.get_name()))


def _memory(reading: WrapperReading, line: Any, graph: Any, inplace: set[int]) -> None:
    kind = type(line).__name__
    if kind == "AllocateLine":
        name, size = line.node.get_name(), _bytes(graph, line.node)
        reading.begin(name, size)
        reading.own(name, size or 0)
    elif kind == "ReuseLine":
        old, new = line.node.get_name(), line.reused_as.get_name()
        within = id(line) in inplace
        reading.begin(new, _bytes(graph, line.reused_as), reuses=old, inplace=within)
        # in place, the step that writes the new buffer still reads the old one
        reading.end(old, reading.step if within else None)
        if old in reading.owned:
            reading.owned[new] = reading.owned.pop(old)
    elif kind in ("FreeIfNotReusedLine", "FreeLine"):
        name = line.node.get_name()
        reading.end(name)
        if not getattr(line, "is_reused", False):
            reading.owned.pop(name, None)
    elif kind == "ReinterpretLine":
        reading.begin(line.reused_as.get_name(), 0, alias_of=line.node.get_name())
    elif kind == "MultiOutputLine":
        _made(reading, line.result_name, graph)
    elif kind in ("ExternKernelAllocLine", "ExternKernelMultiOutLine"):
        _made(reading, line.node.get_name(), graph)


def _made(reading: WrapperReading, name: str, graph: Any) -> None:
    """A buffer that a call returns, in memory that the library allocated."""
    if name in reading.lives:
        return
    buffer = graph.name_to_buffer.get(name)
    size = _bytes(graph, buffer) if buffer is not None else None
    step = max(0, reading.step - 1)
    reading.begin(name, size or 0)
    reading.change(name, first=step, last=step)
    if size:
        reading.own(name, size)


def end_lives(reading: WrapperReading, graph: Any) -> None:
    """Outputs live to the end, as does everything never freed."""
    last = max(0, reading.step - 1)
    outputs = list(graph.get_output_names())
    user_outputs = _user_outputs(graph, len(outputs))
    for place, name in enumerate(outputs):
        life = reading.lives.get(name)
        if life is None:
            continue
        kind = "output" if place < user_outputs else "saved"
        reading.ended.add(name)
        reading.change(name, last=last, kind=life.kind if life.kind == "input" else kind)
    for name in reading.lives.keys() - reading.ended:
        reading.change(name, last=last)


def _user_outputs(graph: Any, count: int) -> int:
    """The number of user outputs of a graph; a forward saves the rest for the backward."""
    if graph.is_inference or graph.is_backward:
        return count
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    found = getattr(metadata, "num_forward", None)
    return found if isinstance(found, int) else count


def _bytes(graph: Any, buffer: Any) -> int | None:
    """Bytes of a buffer's storage; None if a size is symbolic or there is no tensor."""
    try:
        numel = graph.get_allocation_storage_size(buffer)
        itemsize = buffer.get_dtype().itemsize
    except Exception:  # no layout: a symbol, an opaque object, several outputs
        return None
    if getattr(numel, "is_Integer", False) or isinstance(numel, int):
        return int(numel) * int(itemsize)
    return None


def _label(name: str, graph: Any, labels: dict[str, str]) -> str:
    buffer = graph.name_to_buffer.get(name)
    operation = getattr(buffer, "operation_name", None)
    return labels.get(str(operation), "")


def _peak_without_reuse(reading: WrapperReading) -> int:
    """The peak if each buffer had its own memory from its first step to its last."""
    change = [0] * (reading.step + 2)
    for life in reading.lives.values():
        if life.kind != "input" and life.bytes:
            change[life.first] += life.bytes
            change[life.last + 1] -= life.bytes
    peak = live = 0
    for step in change:
        live += step
        peak = max(peak, live)
    return peak


_WRAPPER = "torch._inductor.codegen.wrapper"

HOOK = RecordingHook(
    name="memory planning",
    offers="buffers with their lifetimes, what is reused, and the peak",
    needs=(
        f"{_WRAPPER}:PythonWrapperCodegen.memory_plan_reuse",
        f"{_WRAPPER}:AllocateLine",
        f"{_WRAPPER}:FreeIfNotReusedLine",
        f"{_WRAPPER}:ReuseLine",
        "torch._inductor.graph:GraphLowering.get_allocation_storage_size",
    ),
    install=install,
    stage="memory",
    test="inductor/test_memory.py",
)
