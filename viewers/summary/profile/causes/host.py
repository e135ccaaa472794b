"""The host, not the kernels, takes the time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcw.compiler.trace.records import Advice
from tcw.viewers.summary.profile.causes.cause import REDUCE_OVERHEAD, Cause, mode
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import percent, plural, seconds_text

_HOST = ("wrapper", "guards", "dispatch", "idle")
_LEAST = 0.05
"""Extra share of a call, over eager, that the host has to take."""


def host_bound(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    compiled = index.account("compiled")
    if compiled is None or compiled.measured.median <= 0 or index.head.compiled_again:
        return
    if index.breaks and index.head.clock == "host":
        return  # each break is reported with its part of the same lines
    lines = {line.name: line for line in compiled.lines if line.name in _HOST}
    host = sum(line.time.median for line in lines.values())
    work = sum(line.time.median for line in compiled.lines) - host
    share = host / max(compiled.measured.median, host + work)
    noise = index.head.noise * compiled.measured.median
    eager = index.account("eager")
    before = 0.0  # of eager's call, outside its operations
    if eager is not None:
        operations = (line.time.median for line in eager.lines if line.name not in _HOST)
        before = max(0.0, eager.measured.median - sum(operations))
    lost = host - before
    if lost <= max(noise, _LEAST * compiled.measured.median):
        return
    launches = sum(step.launches for step in index.steps.values())
    kernels = sum(step.time.median for step in index.steps.values() if step.time)
    longest = sorted(lines.values(), key=lambda line: -line.time.median)
    parts = ", ".join(f"{line.name} {seconds_text(line.time.median)}" for line in longest)
    each = f" of {seconds_text(kernels / launches)}" if launches and kernels else ""
    each += " each" if launches > 1 and each else ""
    gpu = index.head.clock == "device"
    yield Cause(
        kind="host",
        title=f"the host takes {percent(share)} of the call, for "
        f"{plural(launches, 'launch')}{each}",
        seconds=lost,
        noise=noise,
        notes=(f"{parts}; {seconds_text(before)} on top of the operations in eager",),
        fixes=(
            Advice(
                text="replays one CUDA graph instead of launching each kernel",
                code='torch.compile(model, mode="reduce-overhead")',
            )
            if gpu
            else Advice(text="give each call more to do: a larger batch", code=""),
        ),
        suggestions=mode(index, REDUCE_OVERHEAD) if gpu else (),
    )
