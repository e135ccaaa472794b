"""The parts of our own engine's kernels, timed one by one: loops that run in sequence.

A kernel with several parts calls a function for each (compiler/codegen/cpp/nests/emit.py), directly
or on all threads. The unit is built again with a clock around each of these calls.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from compiler.measure.compiled.engine_graphs import EngineGraph
from compiler.measure.probes.engine_probe import built_unit
from compiler.runtime.compiled import run_wrapper
from compiler.trace.loop_nests import LoopNest, outermost_loops

_CALL = re.compile(r"^    (?:parallel(?:_in_turn)?\()?(\w+)_(\d+)[,(].*\);$", re.MULTILINE)
_HEAD = """
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


class PartClocks:
    """All kernels of one graph that have parts. Raises `NotAlone` if the unit cannot be built."""

    def __init__(self, graph: EngineGraph) -> None:
        self.graph = graph
        self.parts: list[tuple[str, int]] = []
        """(kernel, number of the part) of each clock."""
        text = _CALL.sub(self._clocked, graph.compiled.artifact.unit)
        if not self.parts:
            return
        functions, handle = built_unit(graph, _HEAD.format(count=len(self.parts)) + text)
        artifact = graph.compiled.artifact
        if artifact.entry:
            self._call = functions.get(artifact.entry, graph.compiled.call)
        else:
            names = {**graph.compiled.call.__globals__, **functions}
            self._call = run_wrapper(artifact, names)
        self._ns = (ctypes.c_long * len(self.parts)).in_dll(handle, "probe_parts")

    def nests(self, kernel: str) -> tuple[LoopNest, ...]:
        """The first loop of each part, in the kernel's text."""
        lines = self.graph.text(kernel).splitlines()
        loops = outermost_loops("\n".join(lines))
        found: list[LoopNest] = []
        for _, number in self._of(kernel):
            head = f"static void {kernel}_{number}("
            starts = next(at for at, line in enumerate(lines, start=1) if line.startswith(head))
            found += [one for one in loops if one.line > starts][:1]
        return tuple(found)

    def _of(self, kernel: str) -> list[tuple[str, int]]:
        return [part for part in self.parts if part[0] == kernel]

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

    def _clocked(self, found: re.Match[str]) -> str:
        if found[1] not in self.graph.kernels:
            return found[0]
        place = len(self.parts)
        self.parts.append((found[1], int(found[2])))
        return (
            f"    {{ const long probe_at = probe_part_now(); {found[0].strip()} "
            f"probe_parts[{place}] += probe_part_now() - probe_at; }}"
        )


def several_parts(clocks: PartClocks) -> Sequence[str]:
    """The kernels that have more than one part."""
    names = [name for name, _ in clocks.parts]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]
