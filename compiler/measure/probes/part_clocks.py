"""The parts of our own engine's kernels, timed one by one: loops that run in sequence.

A kernel with several parts calls a function for each (compiler/codegen/cpp/nests/emit.py), directly
or on all threads. The unit is built again with a clock around each of these calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tcw.compiler.measure.compiled.engine_graphs import EngineGraph
from tcw.compiler.measure.compiled.engine_unit import built_unit
from tcw.compiler.runtime.artifact import Artifact

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
        """(kernel, line of the part's loop in the kernel's text) of each clock."""
        artifact = graph.compiled.artifact
        text = self._clocked(artifact)
        if not self.parts:
            return
        functions, handle = built_unit(
            artifact, graph.compiled.call, _HEAD.format(count=len(self.parts)) + text
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
