"""A unit of our own engine, built again with a clock and an observer around each kernel call.

Kernels are private to their unit and may be inlined, so the unit is built again, with the same
flags. The clock is that of `time.perf_counter_ns`, read in C. The observer is called before and
after each kernel, and sees its pointers.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from tcw.compiler.codegen.launcher.segment import KernelSite
from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.runtime.artifact import Artifact, Unavailable
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.compiled import Boxed, loaded_segments
from tcw.compiler.runtime.libraries import LibrarySource, library
from tcw.compiler.runtime.store import usable_store
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler, unit_libraries

_TRIES = 401
_HEAD = """
typedef void ProbeKernel(void* const*, const long*, char*, int*);
struct ProbeCall {{
  ProbeKernel* kernel; void* const* pointers; const long* sizes; char* workspace;
  long count, size_count;
}};
struct ProbeReading {{ long started[2], ended[2]; }};
extern "C" {{
int clock_gettime(int, long*);
ProbeReading probe_readings[{count}];
void (*probe_observer)(long site, int over, const ProbeCall* call, const long* numbers);
}}
static inline void probe_starts(long site, const ProbeCall& call, const long* numbers) {{
  if (__builtin_expect(probe_observer != 0, 0)) probe_observer(site, 0, &call, numbers);
  clock_gettime(1, probe_readings[site].started);
}}
static inline void probe_ends(long site, const ProbeCall& call, const long* numbers) {{
  clock_gettime(1, probe_readings[site].ended);
  if (__builtin_expect(probe_observer != 0, 0)) probe_observer(site, 1, &call, numbers);
}}
extern "C" void probe_nothing(long* into, long tries) {{
  for (long i = 0; i < tries; i++) {{
    probe_starts(0, ProbeCall(), 0);
    probe_ends(0, ProbeCall(), 0);
    for (int k = 0; k < 4; k++) into[4 * i + k] = ((long*)probe_readings)[k];
  }}
}}
"""
_AGAIN = """
extern "C" int probe_again(const ProbeCall* calls, long count) {{
  alignas(8) int error[8] = {{0}};{stream}
  for (long i = 0; i < count; i++)
    calls[i].kernel(calls[i].pointers, calls[i].sizes, calls[i].workspace, error);
  return *error;
}}
"""


class KernelCall(ctypes.Structure):
    """One call of a kernel, as the unit makes it. `kernel` is null unless the unit can repeat
    calls."""

    _fields_ = [
        ("kernel", ctypes.c_void_p),
        ("pointers", ctypes.POINTER(ctypes.c_void_p)),
        ("sizes", ctypes.POINTER(ctypes.c_long)),
        ("workspace", ctypes.c_void_p),
        ("count", ctypes.c_long),
        ("size_count", ctypes.c_long),
    ]


Observer = ctypes.CFUNCTYPE(
    None,
    ctypes.c_long,
    ctypes.c_int,
    ctypes.POINTER(KernelCall),
    ctypes.POINTER(ctypes.c_long),
)
"""(number of the call in the unit, whether it is over, the call, the segment's numbers)."""


def clocked(unit: str, sites: Sequence[KernelSite], device: int = -1, repeats: bool = False) -> str:
    """The unit's text, with each kernel call between two readings of the clock. `repeats`: its
    calls can be made again (`probe_again`), on the current stream of a GPU; the compiler cannot
    inline a kernel then."""
    lines = unit.split("\n")
    for number, site in enumerate(sites):
        kernel = f"(ProbeKernel*){site.function}" if repeats else "0"
        sizes, workspace = "s" if site.sizes else "0", "workspace" if site.workspace else "0"
        counts = f"sizeof p / sizeof *p, {'sizeof s / sizeof *s' if site.sizes else '0'}"
        lines[site.line - 1] = (
            f"    const ProbeCall probe = {{{kernel}, p, {sizes}, {workspace}, {counts}}};\n"
            f"    probe_starts({number}, probe, n);\n"
            f"{lines[site.line - 1]}\n"
            f"    probe_ends({number}, probe, n);"
        )
    text = _HEAD.format(count=max(1, len(sites))) + "\n".join(lines)
    stream = f"\n  stream = launcher->stream({device});" if device >= 0 else ""
    return text + _AGAIN.format(stream=stream) if repeats else text


def built_unit(
    artifact: Artifact, call: Boxed, text: str
) -> tuple[dict[str, Callable[..., Any]], ctypes.CDLL]:
    """(the segments, the library) of a graph's unit with another text, built unless it is in the
    cache. `call`: the graph itself. Raises `NotAlone`."""
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


class ClockedUnit:
    """A graph's unit with clocks, built unless it is in the cache. Raises `NotAlone`."""

    def __init__(self, artifact: Artifact, call: Boxed, repeats: bool = False) -> None:
        text = clocked(artifact.unit, artifact.sites, artifact.device, repeats)
        self.functions, self.handle = built_unit(artifact, call, text)
        self._count = len(artifact.sites)
        numbers = ctypes.c_long * (4 * max(1, self._count))
        self._numbers = numbers.in_dll(self.handle, "probe_readings")
        self._observer = ctypes.c_void_p.in_dll(self.handle, "probe_observer")
        self.own_ns, self.pair_ns = self._cost()
        """Nanoseconds that an empty reading shows, and that starting and stopping a clock takes."""

    def clear(self) -> None:
        ctypes.memset(self._numbers, 0, ctypes.sizeof(self._numbers))

    def noted(self) -> bytes:
        """The current readings as bytes, for `taken`."""
        return bytes(self._numbers)

    def taken(self, noted: bytes) -> list[tuple[int, int, int]]:
        """(number of the call, start, nanoseconds without the clock's own) of the calls that had
        run since `clear` when these readings were noted."""
        found = []
        numbers = memoryview(noted).cast("l")
        for call in range(self._count):
            seconds, ns, end_seconds, end_ns = numbers[4 * call : 4 * call + 4]
            if end_seconds:
                start = seconds * 1_000_000_000 + ns
                took = end_seconds * 1_000_000_000 + end_ns - start
                found.append((call, start, max(0, took - self.own_ns)))
        return found

    def observe(self, observer: ctypes._CFunctionType | None) -> None:
        """Call `observer` at each kernel; the caller keeps it alive. None removes the observer."""
        self._observer.value = (
            None if observer is None else ctypes.cast(observer, ctypes.c_void_p).value
        )

    def _cost(self) -> tuple[int, int]:
        into = (ctypes.c_long * (4 * _TRIES))()
        self.handle.probe_nothing(into, ctypes.c_long(_TRIES))
        starts = [into[4 * i] * 1_000_000_000 + into[4 * i + 1] for i in range(_TRIES)]
        ends = [into[4 * i + 2] * 1_000_000_000 + into[4 * i + 3] for i in range(_TRIES)]
        own = median(end - start for start, end in zip(starts, ends, strict=True))
        pair = median(after - before for before, after in itertools.pairwise(starts))
        return int(own), int(pair)
