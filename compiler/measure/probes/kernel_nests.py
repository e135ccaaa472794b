"""Times each nest of kernels with several loop nests: in rounds of its own, on request. The kernels
are built again with clocks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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


def kernel_nests(
    of_inductor: Sequence[InductorGraph],
    of_engine: Sequence[EngineGraph],
    records: Sequence[Record],
    run: Callable[[], object],
    call: int,
) -> Iterator[KernelNests]:
    """`run` makes the profiled call once, on fresh inputs. What cannot be built is reported."""
    kernels = [
        record for record in records if isinstance(record, Kernel) and record.language == "cpp"
    ]
    graphs = named_graphs(of_inductor, records).graphs if of_inductor else {}
    timed_kernels: list[_Clocked] = []
    for kernel, made in (*_of_inductor(graphs, kernels), *_of_engine(of_engine, kernels)):
        if isinstance(made, str):
            yield _record(kernel, call, reason=made)
        else:
            timed_kernels.append((kernel, made))
    rounds: list[list[list[float]]] = []

    def once(_: object = None) -> list[list[float]]:
        with ExitStack() as stack:
            for clocks in dict.fromkeys(clocks for _, clocks in timed_kernels):
                stack.enter_context(clocks.timing())
            run()
            return [clocks.read(kernel.name) for kernel, clocks in timed_kernels]

    if timed_kernels:
        warm_up([run], once)
        in_rounds([[run]], lambda *_: rounds.append(once()), RoundsPlan(ROUNDS))
    for (kernel, clocks), of_kernel in zip(timed_kernels, zip(*rounds, strict=True), strict=True):
        each = zip(clocks.loops[kernel.name], zip(*of_kernel, strict=True), strict=True)
        nests = tuple(NestTime(line=line, time=timed(times)) for line, times in each)
        yield _record(kernel, call, nests=nests)


def _of_inductor(
    graphs: Mapping[str, InductorGraph], kernels: Sequence[Kernel]
) -> Iterator[tuple[Kernel, NestClocks | str]]:
    """Each kernel of several nests, with clocks or why it has none."""
    built = 0
    for id, graph in graphs.items():
        for name in graph.kernels:
            kernel = _only(kernels, id, name)
            if kernel is None or len(outermost_loops(graph.text(name))) < 2:
                continue
            built += 1
            if built > MOST:
                yield kernel, f"{MOST} kernels before it were built again"
                continue
            try:
                yield kernel, NestClocks(graph.module, graph.source, name)
            except Exception as error:  # of torch, of the compiler
                yield kernel, _not_built(error)


def _of_engine(
    graphs: Sequence[EngineGraph], kernels: Sequence[Kernel]
) -> Iterator[tuple[Kernel, PartClocks | str]]:
    for graph in graphs:
        try:
            clocks: PartClocks | str = PartClocks(graph)
        except NotAlone as error:
            clocks = _not_built(error)
        for name in graph.kernels if isinstance(clocks, str) else clocks.loops:
            kernel = _only(kernels, graph.graph, name)
            if kernel is not None:
                yield kernel, clocks


def _only(kernels: Sequence[Kernel], graph: str, name: str) -> Kernel | None:
    """The kernel with this name; None if several share the function: their times cannot be
    separated."""
    found = [
        kernel for kernel in kernels if base_graph(kernel.graph) == graph and kernel.name == name
    ]
    return found[0] if len(found) == 1 else None


def _not_built(error: Exception) -> str:
    return f"it could not be built with clocks: {reason_of(error, 200)}"


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

        definition = next(
            (definition for definition in definitions(source) if definition.name == name), None
        )
        if (
            definition is None
            or definition.how != "cpp_pybinding"
            or not source.startswith(_END, definition.end)
        ):
            raise LookupError(f"{name} is not where it is expected")
        text = definition.source
        nests = outermost_loops(text)
        self.name = name
        self.loops = {name: [nest.line for nest in nests]}
        """Kernel -> the line of the outermost loop of each nest, in the kernel's text."""
        self._module = module
        statement = source[definition.start : definition.end] + _END
        statement = statement.replace(text, clocked(text, nests))
        made: dict[str, Any] = {"async_compile": AsyncCompile()}
        exec(statement, made)
        made["async_compile"].wait(made)
        self._function: Callable[..., Any] = made[name]
        library = ctypes.CDLL(self._function.__self__.__file__)
        library.probe_nests.restype = ctypes.POINTER(ctypes.c_long)
        self._ns = library.probe_nests()

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Inside, the module calls this kernel, and its nests are timed from 0."""
        for place in range(len(self.loops[self.name])):
            self._ns[place] = 0
        before = getattr(self._module, self.name)
        setattr(self._module, self.name, self._function)
        try:
            yield
        finally:
            setattr(self._module, self.name, before)

    def read(self, kernel: str) -> list[float]:
        """The seconds of each nest, summed over all calls."""
        return [self._ns[place] / 1e9 for place in range(len(self.loops[kernel]))]


class PartClocks:
    """All kernels of one graph of our engine that have parts: loops that run in sequence, for each
    of which the kernel calls a function (compiler/codegen/cpp/nests/emit.py). Raises `NotAlone` if
    the unit cannot be built."""

    def __init__(self, graph: EngineGraph) -> None:
        self.graph = graph
        artifact = graph.compiled.artifact
        several = {n: k for n, k in artifact.kernels.items() if len(k.parts) > 1}
        self.loops = {
            name: [part.loop for part in kernel_text.parts] for name, kernel_text in several.items()
        }
        """Kernel -> the line of the loop of each part, in the kernel's text."""
        if not several:
            return
        lines, count = artifact.unit.split("\n"), 0
        for kernel in several.values():
            for part in kernel.parts:
                place = kernel.line + part.call - 2
                lines[place] = (
                    f"    {{ const long probe_at = probe_part_now(); {lines[place].strip()} "
                    f"probe_parts[{count}] += probe_part_now() - probe_at; }}"
                )
                count += 1
        text = _PART_HEAD.format(count=count) + "\n".join(lines)
        functions, handle = built_unit(artifact, graph.compiled.call, text)
        self._call = graph.calling(functions)
        self._ns = (ctypes.c_long * count).in_dll(handle, "probe_parts")

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Inside, the graph runs with clocks, and its parts are timed from 0."""
        ctypes.memset(self._ns, 0, ctypes.sizeof(self._ns))
        with self.graph.replaced(self._call):
            yield

    def read(self, kernel: str) -> list[float]:
        """The seconds of each part, summed over all calls."""
        names = [name for name, lines in self.loops.items() for _ in lines]
        return [ns / 1e9 for name, ns in zip(names, self._ns, strict=True) if name == kernel]


_Clocked = tuple[Kernel, NestClocks | PartClocks]
