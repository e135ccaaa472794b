"""A profiled call for Perfetto or chrome://tracing: one round of each side, one track each.

The format is the JSON object of the Trace Event Format: complete events (`X`) with times in µs, and
metadata events (`M`) that name processes and threads. Both sides start at 0, for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tcw.compiler.trace.output_file import OutputKind
from tcw.compiler.trace.records import CallTimeline, CompiledStep, EagerOperation, Location, Moment
from tcw.viewers.file_names import FileNames
from tcw.viewers.json_text import json_text
from tcw.viewers.labels import kernel_label
from tcw.viewers.plain import plain
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import Profile, profiles_of
from tcw.viewers.summary.profile.causes.step_words import bare
from tcw.viewers.summary.profile.rows import where
from tcw.viewers.words import numbers_text

Event = dict[str, Any]
MICRO = 1e6
_MARK = {"writer": "tcw profile --chrome"}
CHROME = OutputKind(
    "Chrome trace of tcw's", lambda head: head.startswith(json_text(_MARK, 0)[:-2].encode())
)
"""The kind of such a file, recognised by its first key."""


def chrome_trace(recording: Recording) -> dict[str, Any]:
    """The object of a JSON trace, as `json_text` writes it on one line. No events if no call was
    profiled."""
    settings = recording.settings
    names = FileNames.for_settings(settings)
    events: list[Event] = []
    process = 0
    for profile in profiles_of(recording):
        for timeline in profile.index.timelines:
            process += 1
            events += _side(profile, timeline, process, names)
    machine = recording.environment
    return {
        **_MARK,
        "displayTimeUnit": "ns",
        "traceEvents": events,
        "otherData": {
            "file": plain(settings.file) if settings else "",
            "torch": machine.torch if machine else "",
        },
    }


def _side(
    profile: Profile, timeline: CallTimeline, process: int, names: FileNames
) -> Iterable[Event]:
    side = "eager" if timeline.side == "eager" else profile.engine or "compiled"
    thread = profile.head.device if profile.head.clock == "device" else "calls"
    yield _named("process_name", process, side)
    yield {**_named("process_sort_index", process, ""), "args": {"sort_index": process}}
    yield _named("thread_name", process, plain(thread))
    yield {
        "name": f"call {timeline.call}, {side}",
        "cat": "call",
        "ph": "X",
        "ts": 0.0,
        "dur": timeline.seconds * MICRO,
        "pid": process,
        "tid": 1,
        "args": {"what": profile.head.what},
    }
    for moment, seconds in _nesting(timeline):
        step = profile.index.steps.get(moment.of)
        operation = profile.index.operations.get(moment.of)
        if step is not None:
            name, kind, args = _of_step(profile, step, names)
        elif operation is not None:
            name, kind, args = _of_operation(profile, operation, names)
        else:
            continue
        yield {
            "name": plain(name),
            "cat": kind,
            "ph": "X",
            "ts": moment.start * MICRO,
            "dur": seconds * MICRO,
            "pid": process,
            "tid": 1,
            "args": {
                key: _argument(value) for key, value in args.items() if value not in ("", None)
            },
        }


def _nesting(timeline: CallTimeline) -> Iterable[tuple[Moment, float]]:
    """Each moment and its seconds, cut where the next one starts: viewers drop slices of a track
    that do not nest, and what is measured runs in sequence."""
    moments = sorted(timeline.moments, key=lambda moment: moment.start)
    ends = [*(moment.start for moment in moments[1:]), timeline.seconds]
    for moment, end in zip(moments, ends, strict=False):
        yield moment, max(0.0, min(moment.seconds, end - moment.start))


def _named(what: str, process: int, name: str) -> Event:
    return {"name": what, "ph": "M", "pid": process, "tid": 1, "args": {"name": name}}


def _argument(value: object) -> object:
    return value if isinstance(value, int | float) else plain(str(value))


def _of_step(
    profile: Profile, step: CompiledStep, names: FileNames
) -> tuple[str, str, dict[str, object]]:
    kernel = profile.index.kernel_of(step)
    region = profile.row_with(step.id)
    words = kernel_label(kernel) if kernel else bare(step.name)
    places = kernel.locations if kernel else region.locations if region else ()
    return (
        f"{_lines(places, names) or (where(region) if region else '')} {words}".strip(),
        step.kind,
        {
            "kernel": step.kernel,
            "name": step.name,
            "graph": step.graph,
            "phase": step.phase,
            "region": region.label if region else "",
            "read_bytes": step.read_bytes,
            "write_bytes": step.write_bytes,
            "flops": step.flops,
            "launches": step.launches,
            "on the device": ", ".join(step.kernels),
        },
    )


def _of_operation(
    profile: Profile, operation: EagerOperation, names: FileNames
) -> tuple[str, str, dict[str, object]]:
    region = profile.row_with(operation.id)
    places = (operation.location,) if operation.location else ()
    at = _lines(places, names) or operation.module or (where(region) if region else "")
    return (
        f"{at} {bare(operation.operation)}".strip(),
        "aten",
        {
            "operation": operation.operation,
            "arguments": operation.arguments,
            "module": operation.module,
            "phase": operation.phase,
            "region": region.label if region else "",
            "read_bytes": operation.read_bytes,
            "write_bytes": operation.write_bytes,
            "flops": operation.flops,
            "launches": operation.launches,
            "on the device": ", ".join(operation.kernels),
        },
    )


def _lines(places: Iterable[Location], names: FileNames) -> str:
    """`model.py:18`, `model.py:18–20`: of the first file."""
    locations = list(places)
    if not locations:
        return ""
    first = locations[0].file
    numbers = numbers_text(location.line for location in locations if location.file == first)
    return f"{names.short(first)}:{numbers}"
