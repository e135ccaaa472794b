"""The text of a unit of our own engine with a clock around each kernel call.

Kernels are private to their unit and may be inlined, so the unit is built again. The clock is that
of `time.perf_counter_ns`, read in C. An observer of a kernel's memory is called with the pointers
before and after the kernel.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from statistics import median

from tcw.compiler.codegen.launcher.segment import KernelSite

_TRIES = 401

_HEAD = """
struct ProbeReading {{ long started[2], ended[2]; }};
extern "C" {{
int clock_gettime(int, long*);
ProbeReading probe_readings[{count}];
void (*probe_observer)(long call, int over, void* const* pointers, const long* numbers);
}}
static inline void probe_starts(long call, void* const* pointers, const long* numbers) {{
  if (__builtin_expect(probe_observer != 0, 0)) probe_observer(call, 0, pointers, numbers);
  clock_gettime(1, probe_readings[call].started);
}}
static inline void probe_ends(long call, void* const* pointers, const long* numbers) {{
  clock_gettime(1, probe_readings[call].ended);
  if (__builtin_expect(probe_observer != 0, 0)) probe_observer(call, 1, pointers, numbers);
}}
extern "C" void probe_nothing(long* into, long tries) {{
  for (long i = 0; i < tries; i++) {{
    probe_starts(0, 0, 0);
    probe_ends(0, 0, 0);
    for (int k = 0; k < 4; k++) into[4 * i + k] = ((long*)probe_readings)[k];
  }}
}}
"""

Observer = ctypes.CFUNCTYPE(
    None,
    ctypes.c_long,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_long),
)
"""(number of the call in the unit, whether it is over, its pointers, the segment's numbers)."""


def clocked(unit: str, sites: Sequence[KernelSite]) -> str:
    """The unit's text, with each kernel call between two readings of the clock."""
    lines = unit.split("\n")
    for number, site in enumerate(sites):
        call = lines[site.line - 1]
        lines[site.line - 1] = (
            f"    probe_starts({number}, p, n);\n{call}\n    probe_ends({number}, p, n);"
        )
    return _HEAD.format(count=max(1, len(sites))) + "\n".join(lines)


class Readings:
    """The clock readings of a loaded unit."""

    def __init__(self, handle: ctypes.CDLL, count: int) -> None:
        self._handle = handle
        self._numbers = (ctypes.c_long * (4 * max(1, count))).in_dll(handle, "probe_readings")
        self._observer = ctypes.c_void_p.in_dll(handle, "probe_observer")
        self._count = count
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
        self._handle.probe_nothing(into, ctypes.c_long(_TRIES))
        starts = [into[4 * i] * 1_000_000_000 + into[4 * i + 1] for i in range(_TRIES)]
        ends = [into[4 * i + 2] * 1_000_000_000 + into[4 * i + 3] for i in range(_TRIES)]
        own = median(end - start for start, end in zip(starts, ends, strict=True))
        pair = median(after - before for before, after in itertools.pairwise(starts))
        return int(own), int(pair)
