"""Times each nest of kernels with several loop nests: in rounds of its own, on request. The kernels
are built again with clocks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.control.hooks import Hook, Missing
from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.measure.compiled.engine_graphs import EngineGraph
from tcw.compiler.measure.compiled.engine_unit import built_unit
from tcw.compiler.measure.compiled.inductor_graphs import InductorGraph
from tcw.compiler.measure.compiled.named_graphs import named_graphs
from tcw.compiler.measure.host import reason_of
from tcw.compiler.measure.rounds.noise import timed
from tcw.compiler.measure.rounds.rounds import RoundsPlan, in_rounds, warm_up
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.trace.generated_code import definitions
from tcw.compiler.trace.loop_nests import LoopNest, outermost_loops
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Kernel, KernelNests, NestTime, Record

HOOK = Hook(
    name="clocks in loop nests",
    offers="profile: the time of each loop nest of Inductor's kernels",
    needs=(
        "torch._inductor.async_compile:AsyncCompile.cpp_pybinding(argtypes, source_code)",
        "torch._inductor.async_compile:AsyncCompile.wait(scope)",
    ),
    test="measure/probes/test_kernel_nests.py",
)
ROUNDS = 7
MOST = 16
"""The maximum number of kernels that are built again: each takes seconds."""
_NEST_HEAD = """\
#include <chrono>
static long probe_ns[{count}];
extern "C" long* probe_nests() {{ return probe_ns; }}
static inline long probe_now() {{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return (long)std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}}"""
_FIRST = "omp_get_thread_num() == 0"
_END = "''')"
_PART_HEAD = """
extern "C" {{
int clock_gettime(int, long*);
long probe_parts[{count}];
}}
static inline long probe_part_now() {{
  long now[2];
  clock_gettime(1, now);
  return now[0] * 1000000000 + now[1];
}}
"""


@dataclass
class _Timed:
    """One kernel with clocks around its nests."""

    kernel: Kernel
    lines: Sequence[int]
    """The outermost loop of each, in the kernel's text."""
    rounds: list[list[float]] = field(default_factory=list)

    def record(self, call: int) -> KernelNests:
        each = zip(*self.rounds, strict=True)
        found = zip(self.lines, each, strict=True)
        nests = tuple(NestTime(line=line, time=timed(times)) for line, times in found)
        return _record(self.kernel, call, nests=nests)


_Read = Callable[[], list[float]]
_Clock = tuple[_Timed, Callable[[ExitStack], _Read]]
"""A kernel, and the function that starts its clocks."""


def kernel_nests(
    of_inductor: Sequence[InductorGraph],
    of_engine: Sequence[EngineGraph],
    records: Sequence[Record],
    run: Callable[[], object],
    call: int,
) -> Iterator[KernelNests]:
    """`run` makes the profiled call once, on fresh inputs. What cannot be built is reported."""
    kernels = [one for one in records if isinstance(one, Kernel) and one.language == "cpp"]
    clocks: list[_Clock] = []
    graphs = named_graphs(of_inductor, records).graphs if of_inductor else {}
    for made in (*_of_inductor(graphs, kernels, call), *_of_engine(of_engine, kernels, call)):
        if isinstance(made, KernelNests):
            yield made
        else:
            clocks.append(made)

    def once(_: object = None) -> list[list[float]]:
        with ExitStack() as stack:
            reads = [start(stack) for _, start in clocks]
            run()
            return [read() for read in reads]

    def make(_: object, turn: int, count: int) -> None:
        for (one, _), seconds in zip(clocks, once(), strict=True):
            one.rounds.append(seconds)

    if clocks:
        warm_up([run], once)
        in_rounds([[run]], make, RoundsPlan(ROUNDS))
    for one, _ in clocks:
        yield one.record(call)


def _of_inductor(
    graphs: Mapping[str, InductorGraph], kernels: Sequence[Kernel], call: int
) -> Iterator[_Clock | KernelNests]:
    built = 0
    for id, graph in graphs.items():
        for name in graph.kernels:
            kernel = _only(kernels, id, name)
            if kernel is None or len(outermost_loops(graph.text(name))) < 2:
                continue
            built += 1
            if built > MOST:
                yield _record(kernel, call, reason=f"{MOST} kernels before it were built again")
                continue
            try:
                clock = NestClocks(graph.module, graph.source, name)
            except Exception as error:  # of torch, of the compiler
                yield _not_built(kernel, call, error)
                continue

            def start(stack: ExitStack, clock: NestClocks = clock) -> _Read:
                return stack.enter_context(clock.timing())

            yield _Timed(kernel, [nest.line for nest in clock.nests]), start


def _of_engine(
    graphs: Sequence[EngineGraph], kernels: Sequence[Kernel], call: int
) -> Iterator[_Clock | KernelNests]:
    for graph in graphs:
        try:
            clocks = PartClocks(graph)
        except NotAlone as error:
            names = (_only(kernels, graph.graph, name) for name in graph.kernels)
            yield from (_not_built(kernel, call, error) for kernel in names if kernel)
            continue
        entered: list[Callable[[str], list[float]]] = []
        for name in several_parts(clocks):
            kernel = _only(kernels, graph.graph, name)
            if kernel is None:
                continue

            def start(
                stack: ExitStack,
                clocks: PartClocks = clocks,
                name: str = name,
                entered: list[Any] = entered,
            ) -> _Read:
                if not entered:  # one for all kernels of the graph
                    entered.append(stack.enter_context(clocks.timing()))
                    stack.callback(entered.clear)
                read = entered[0]
                return lambda: read(name)

            yield _Timed(kernel, clocks.loops(name)), start


def _only(kernels: Sequence[Kernel], graph: str, name: str) -> Kernel | None:
    """The kernel with this name; None if several share the function: their times cannot be
    separated."""
    found = [one for one in kernels if base_graph(one.graph) == graph and one.name == name]
    return found[0] if len(found) == 1 else None


def _not_built(kernel: Kernel, call: int, error: Exception) -> KernelNests:
    reason = reason_of(error, 200)
    return _record(kernel, call, reason=f"it could not be built with clocks: {reason}")


def _record(kernel: Kernel, call: int, **found: Any) -> KernelNests:
    return KernelNests(graph=base_graph(kernel.graph), kernel=kernel.id, call=call, **found)


def clocked(text: str, nests: Sequence[LoopNest]) -> str:
    """The kernel's text with clocks; `probe_nests()` returns their sums."""
    before: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    for place, nest in enumerate(nests):
        now = f"{_FIRST} ? probe_now() : 0" if nest.shared else "probe_now()"
        adds = f"probe_ns[{place}] += probe_now() - probe_at_{place};"
        before.setdefault(nest.first, []).append(f"const long probe_at_{place} = {now};")
        after.setdefault(nest.last, []).append(f"if ({_FIRST}) {adds}" if nest.shared else adds)
    lines: list[str] = []
    headed = False
    for number, line in enumerate(text.splitlines(), start=1):
        lines += [*before.get(number, ()), line, *after.get(number, ())]
        if not headed and line.startswith("#include"):
            headed = True
            lines.append(_NEST_HEAD.format(count=len(nests)))
    return "\n".join(lines)


class NestClocks:
    """One kernel that Inductor generated, with a clock around each of its loop nests. A nest shared
    by all threads of a team is timed by the first thread: from its arrival at the nest until it has
    passed the nest's barrier. Building it takes seconds. Raises the
    compiler's errors, `LookupError` if the kernel's text is not as expected, and `Missing`."""

    def __init__(self, module: Any, source: str, name: str) -> None:
        if reason := HOOK.missing():
            raise Missing(reason)
        from torch._inductor.async_compile import AsyncCompile

        found = next((one for one in definitions(source) if one.name == name), None)
        if found is None or found.how != "cpp_pybinding" or not source.startswith(_END, found.end):
            raise LookupError(f"{name} is not where it is expected")
        text = found.source
        self.name = name
        self.nests = outermost_loops(text)
        self._module = module
        statement = source[found.start : found.end] + _END
        statement = statement.replace(text, clocked(text, self.nests))
        made: dict[str, Any] = {"async_compile": AsyncCompile()}
        exec(statement, made)
        made["async_compile"].wait(made)
        self._function: Callable[..., Any] = made[name]
        library = ctypes.CDLL(self._function.__self__.__file__)
        library.probe_nests.restype = ctypes.POINTER(ctypes.c_long)
        self._ns = library.probe_nests()

    @contextmanager
    def timing(self) -> Iterator[Callable[[], list[float]]]:
        """Inside, the module calls this kernel. Yields a function that returns the seconds of each
        nest since then, summed over all calls."""
        for place in range(len(self.nests)):
            self._ns[place] = 0
        before = getattr(self._module, self.name)
        setattr(self._module, self.name, self._function)
        try:
            yield lambda: [self._ns[place] / 1e9 for place in range(len(self.nests))]
        finally:
            setattr(self._module, self.name, before)


class PartClocks:
    """All kernels of one graph of our engine that have parts: loops that run in sequence, for each
    of which the kernel calls a function (compiler/codegen/cpp/nests/emit.py). Raises `NotAlone` if
    the unit cannot be built."""

    def __init__(self, graph: EngineGraph) -> None:
        self.graph = graph
        self.parts: list[tuple[str, int]] = []
        """(kernel, line of the part's loop in the kernel's text) of each clock."""
        artifact = graph.compiled.artifact
        text = self._clocked(artifact)
        if not self.parts:
            return
        functions, handle = built_unit(
            artifact, graph.compiled.call, _PART_HEAD.format(count=len(self.parts)) + text
        )
        self._call = graph.calling(functions)
        self._ns = (ctypes.c_long * len(self.parts)).in_dll(handle, "probe_parts")

    def loops(self, kernel: str) -> list[int]:
        """The line of the first loop of each part, in the kernel's text."""
        return [line for name, line in self.parts if name == kernel]

    @contextmanager
    def timing(self) -> Iterator[Callable[[str], list[float]]]:
        """Inside, the graph runs with clocks. Yields a function that returns the seconds of each
        part of a kernel since then, summed over all calls."""
        for place in range(len(self.parts)):
            self._ns[place] = 0
        with self.graph.replaced(self._call):
            yield self._read

    def _read(self, kernel: str) -> list[float]:
        of = [place for place, (name, _) in enumerate(self.parts) if name == kernel]
        return [self._ns[place] / 1e9 for place in of]

    def _clocked(self, artifact: Artifact) -> str:
        lines = artifact.unit.split("\n")
        for name, kernel in artifact.kernels.items():
            for part in kernel.parts:
                number, place = len(self.parts), kernel.line + part.call - 2
                self.parts.append((name, part.loop))
                lines[place] = (
                    f"    {{ const long probe_at = probe_part_now(); {lines[place].strip()} "
                    f"probe_parts[{number}] += probe_part_now() - probe_at; }}"
                )
        return "\n".join(lines)


def several_parts(clocks: PartClocks) -> Sequence[str]:
    """The kernels that have more than one part."""
    names = [name for name, _ in clocks.parts]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]
