"""CUDA graphs: what was recorded, recorded again and why, and what is launched kernel by kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcw.compiler.trace.cudagraph_reasons import NO_GPU
from tcw.compiler.trace.records import Advice, CudagraphRecording, CudagraphSkip, Location
from tcw.viewers.collected import grouped, known_sum
from tcw.viewers.recording import Recording
from tcw.viewers.words import bytes_text, listed, numbers_text, plural, seconds_text

MANY_SIZES = "a recording for each set of sizes"


@dataclass(frozen=True)
class CudagraphUse:
    """One graph, or a part of one, that is replayed."""

    graph: str
    part: str
    """"" if the graph has one part."""
    recordings: tuple[CudagraphRecording, ...]

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """The distinct sets of sizes it was recorded for."""
        return tuple(dict.fromkeys(recording.sizes for recording in self.recordings))

    @property
    def seconds(self) -> float:
        return sum(recording.seconds for recording in self.recordings)

    @property
    def bytes(self) -> int | None:
        """None if it is not known of any."""
        return known_sum(recording.bytes for recording in self.recordings)


@dataclass(frozen=True)
class CudagraphCost:
    """Recordings that an earlier one did not save, for one reason, or skips of one kind."""

    reason: str
    """In torch's words."""
    location: Location | None
    records: tuple[CudagraphRecording | CudagraphSkip, ...]
    title: str
    notes: tuple[str, ...]
    fixes: tuple[Advice, ...]
    seconds: float | None = None
    """None of a skip."""


def cudagraph_uses(recording: Recording) -> tuple[CudagraphUse, ...]:
    """One entry for each graph, or part, that was recorded."""
    by_part = grouped(
        ((cudagraph_recording.graph, cudagraph_recording.part), cudagraph_recording)
        for cudagraph_recording in recording.all(CudagraphRecording)
    )
    parts = [graph for graph, _ in by_part]
    return tuple(
        CudagraphUse(graph, part if parts.count(graph) > 1 else "", tuple(records))
        for (graph, part), records in by_part.items()
    )


def cudagraph_costs(recording: Recording) -> tuple[CudagraphCost, ...]:
    """What costs: recordings made again, the longest first, then what is not replayed."""
    again: dict[tuple[str, Location | None], list[CudagraphRecording]] = {}
    for use in cudagraph_uses(recording):
        first = use.recordings[0].sizes
        for cudagraph_recording in use.recordings:
            if cudagraph_recording.again:
                again.setdefault(
                    (cudagraph_recording.reason, cudagraph_recording.location), []
                ).append(cudagraph_recording)
            elif cudagraph_recording.sizes != first:
                again.setdefault((MANY_SIZES, None), []).append(cudagraph_recording)
    skips = grouped(
        ((skip.scope, skip.reason, skip.location), skip) for skip in recording.all(CudagraphSkip)
    )
    recorded = [_again(reason, at, records) for (reason, at), records in again.items()]
    return (
        *sorted(recorded, key=lambda cost: -(cost.seconds or 0.0)),
        *(_skip(reason, at, records) for (_, reason, at), records in skips.items()),
    )


def _again(
    reason: str, location: Location | None, records: list[CudagraphRecording]
) -> CudagraphCost:
    what = plural(len(dict.fromkeys(record.graph for record in records)), "CUDA graph")
    times = f" {len(records)} times" if len(records) > 1 else ""
    calls = sorted({record.call for record in records if record.call})
    which = "call" if len(calls) == 1 else "calls"
    notes = [f"in {which} {numbers_text(calls)}"] if calls else []
    grown = sum(record.bytes or 0 for record in records)
    if grown:
        notes.append(f"{bytes_text(grown)} more memory")
    if reason == MANY_SIZES:
        sizes = len(dict.fromkeys(record.sizes for record in records))
        title = f"{what} recorded again for {plural(sizes, 'further set')} of sizes"
    else:
        inputs = dict.fromkeys(name for record in records for name in record.inputs)
        which = f" ({listed(tuple(inputs))})" if inputs else ""
        title = f"{what} recorded again{times}: {reason}{which}"
    return CudagraphCost(
        reason=reason,
        location=location,
        records=tuple(records),
        title=title,
        notes=tuple(notes),
        fixes=_advice(reason),
        seconds=sum(record.seconds for record in records),
    )


def _skip(reason: str, location: Location | None, records: list[CudagraphSkip]) -> CudagraphCost:
    scope = records[0].scope
    title = f"no CUDA graph: {reason}"
    notes = ["kernels are launched one by one"]
    if reason == NO_GPU:
        title, notes = f"CUDA graphs are asked for, but {reason}", []
    elif scope == "part":
        title = f"a part of the graph is not in a CUDA graph: {reason}"
        notes = ["it runs between the parts that are"]
    elif scope == "call":
        title = f"calls are not replayed: {reason}"
    notes += [f"{len(records)} times"] if len(records) > 1 else []
    return CudagraphCost(reason, location, tuple(records), title, tuple(notes), _advice(reason))


_ADVICE = {
    "mutated inputs": Advice(
        text="If callers pass the same tensor each time, mark it with "
        "torch._dynamo.mark_static_address; else return the new value instead of writing it"
    ),
    "cpu ": Advice(text="If the tensor can be on the GPU, create it there: device=x.device"),
    "DeviceCopy ops": Advice(text="Copy between devices before or after the compiled function"),
    "static input data pointer changed": Advice(
        text="If parameters or buffers are replaced, write into them instead (copy_): a recording "
        "reads them where they were"
    ),
    "outputs of earlier calls are alive": Advice(
        text="If the last step's outputs are no longer needed, say so before each step",
        code="torch.compiler.cudagraph_mark_step_begin()",
        by="torch",
    ),
    MANY_SIZES: Advice(
        text="If sizes vary, pad them to a few, or leave graphs with symbolic sizes out",
        code="torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True",
        by="torch",
    ),
}
"""By the beginning of torch's reason."""


def _advice(reason: str) -> tuple[Advice, ...]:
    return tuple(advice for start, advice in _ADVICE.items() if reason.startswith(start))


def cudagraph_words(uses: Iterable[CudagraphUse]) -> str:
    """`2 CUDA graphs recorded, 3 times again · 412 ms · 24.0 MB`; "" if none was."""
    found = tuple(uses)
    if not found:
        return ""
    count = sum(len(use.recordings) for use in found)
    size = known_sum(use.bytes for use in found)
    more = count - len(found)
    words = f"{plural(len(found), 'CUDA graph')} recorded"
    words += f", {plural(more, 'time')} again" if more else ""
    if any(recording.again is None for use in found for recording in use.recordings):
        words = f"CUDA graphs recorded {plural(count, 'time')}"
    return " · ".join(
        [words, seconds_text(sum(use.seconds for use in found))]
        + ([bytes_text(size)] if size else [])
    )
