"""A kernel that Inductor generated, rebuilt with a clock around each of its loop nests.

A nest shared by all threads of a team is timed by the first thread: from its arrival at the nest
until it has passed the nest's barrier.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tcw.compiler.control.hooks import Hook, Missing
from tcw.compiler.trace.generated_code import definitions
from tcw.compiler.trace.loop_nests import LoopNest, outermost_loops

_HEAD = """\
#include <chrono>
static long probe_ns[{count}];
extern "C" long* probe_nests() {{ return probe_ns; }}
static inline long probe_now() {{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return (long)std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}}"""
_FIRST = "omp_get_thread_num() == 0"
HOOK = Hook(
    name="clocks in loop nests",
    offers="profile: the time of each loop nest of Inductor's kernels",
    needs=(
        "torch._inductor.async_compile:AsyncCompile.cpp_pybinding(argtypes, source_code)",
        "torch._inductor.async_compile:AsyncCompile.wait(scope)",
    ),
    test="measure/probes/test_nest_clocks.py",
)
_END = "''')"


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
            lines.append(_HEAD.format(count=len(nests)))
    return "\n".join(lines)


class NestClocks:
    """One kernel of a generated module, with clocks. Building it takes seconds. Raises the
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
