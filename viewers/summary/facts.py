"""What a recording compiles to, as facts: one name and one value each.

`tcw diff` compares the facts of two recordings, `tcw check` compares them with those that were
accepted. A fact names source lines by their text, not by their number, so that a moved line changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from tcw.compiler.trace.matching import is_predicted
from tcw.compiler.trace.records import (
    CacheLookup,
    CallEnd,
    EagerFallback,
    Guards,
    Kernel,
    KernelBinary,
    Location,
    MemoryPlan,
    Numerics,
    Partition,
    SchedulerNode,
    TorchSettings,
)
from tcw.compiler.trace.records.session import FactKind
from tcw.viewers.collected import whole_sum
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary
from tcw.viewers.summary.cudagraphs import cudagraph_costs
from tcw.viewers.summary.findings import fallback_reason, values_text
from tcw.viewers.summary.fusion import named_together
from tcw.viewers.summary.kernels import loop_nests
from tcw.viewers.summary.memory_plans import highest_peak
from tcw.viewers.summary.own_words import without_addresses, without_reprs
from tcw.viewers.summary.place import Place
from tcw.viewers.words import NOT_IN_LOG, listed, plural

FactUnit = Literal["count", "bytes", "seconds", "instructions", "error"]
Value = int | float | str


@dataclass(frozen=True)
class Fact:
    """One fact of a recording."""

    group: str
    """`break`, `library`, …: the fact's group; "" for a number of the whole recording."""
    name: str
    value: Value
    unit: FactUnit = "count"
    file: str = ""
    line: int = 0
    """Its line; 0 if it has none."""
    title: str = ""
    """What it is apart from its line, where `tcw diff` names that too: `print()`."""
    more: str = ""
    """What it costs: `, 1 more graph`."""
    times: int = 1
    """How often it happened, over all compiles."""
    by: str = ""
    """Whose call it happened in: `call 3`."""
    subject: str = ""
    """Of a recompile: what changed, without its values."""

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.name


@dataclass(frozen=True)
class Numbered:
    """One number of a recording; None if it was not measured or is not known."""

    name: str
    value: float | None
    unit: FactUnit = "count"


def numbers(recording: Recording, summary: Summary) -> tuple[Numbered, ...]:
    """The numbers of a recording, always the same ones, in the order of a compile. A log of
    torch's may not hold some of them."""

    def held(kind: FactKind, value: int | None) -> int | None:
        return None if recording.lacks(kind) else value

    operations = sum(not is_predicted(node.graph) for node in recording.all(SchedulerNode))
    saved = whole_sum(partition.saved_bytes for partition in recording.all(Partition))
    return (
        Numbered("graphs", held("graphs", summary.graphs)),
        Numbered("graph breaks", len(summary.breaks)),
        Numbered("recompiles", sum(len(cause.frames) for cause in summary.recompiles)),
        Numbered("guards", held("guards", summary.guards)),
        Numbered("scheduler nodes", operations or None),
        Numbered("loop nests", held("fusion", loop_nests(recording.kernels.values()))),
        Numbered("kernels", held("kernels", summary.kernels.count)),
        Numbered("bytes moved", moved_bytes(recording), "bytes"),
        Numbered("saved for backward", saved, "bytes"),
        Numbered("memory peak", highest_peak(recording), "bytes"),
        Numbered("max error", _error(summary.numerics), "error"),
        Numbered(
            "compile CPU", summary.speed.compile_cpu_seconds if summary.speed else None, "seconds"
        ),
    )


WRONG_RESULTS = "wrong results"
"""The name of the failure of results that are not eager's."""

NUMBERS = (
    "graphs", "graph breaks", "recompiles", "guards", "scheduler nodes", "loop nests", "kernels",
    "bytes moved", "saved for backward", "memory peak", "max error", "compile CPU",
    "compile instructions", "predicted kernels", "predicted spills",
)  # fmt: skip
"""The names of all facts that are one number of a recording."""


def facts(recording: Recording, summary: Summary, fused: Iterable[str] = ()) -> tuple[Fact, ...]:
    """Every fact of one recording of one engine. `fused`: groups of operations that are to share
    one kernel, such as `softmax + add`; each is a fact too."""
    return (
        *(
            Fact(
                "",
                number.name,
                int(number.value) if number.value % 1 == 0 else number.value,
                number.unit,
            )
            for number in numbers(recording, summary)
            if number.value is not None
        ),
        *_instructions(recording),
        *_predicted(recording),
        *_merged(listed_facts(recording, summary)),
        *(Fact("fused", group, _fused(recording, group)) for group in fused),
    )


def listed_facts(recording: Recording, summary: Summary) -> Iterator[Fact]:
    """Every fact that is no number, once for each place where it happened."""
    yield from failures(summary)
    yield from _breaks(summary)
    yield from _fallbacks(recording)
    yield from _recompiles(summary)
    yield from _sizes(recording)
    yield from _cudagraphs(recording)
    yield from _bypasses(recording)
    yield from _settings(recording)
    yield from _kernels(recording)


def _fused(recording: Recording, group: str) -> str:
    if named_together(recording, group):
        return "yes"
    generated = [kernel for kernel in recording.kernels.values() if kernel.generated]
    unknown = recording.lacks("fusion") and not any(kernel.origins for kernel in generated)
    return NOT_IN_LOG if unknown else "no"


def moved_bytes(recording: Recording) -> int | None:
    """Bytes that the kernels read and write in memory, each buffer once a kernel, over all graphs;
    None if there is none, or a size is unknown. What a kernel keeps in registers is not moved."""
    nodes = {
        (scheduler_node.graph, scheduler_node.name): scheduler_node
        for scheduler_node in recording.all(SchedulerNode)
    }
    plans = {plan.graph: plan for plan in recording.all(MemoryPlan) if not is_predicted(plan.graph)}
    total: int | None = None
    for id, plan in plans.items():
        sizes = {buffer.name: buffer.bytes for buffer in plan.buffers}
        if None in sizes.values():
            return None
        total = total or 0
        for kernel in recording.kernels.values():
            if kernel.graph != id or kernel.predicted:
                continue
            touched: dict[str, int] = {}
            for name in kernel.nodes:
                node = nodes.get((id, name))
                touched |= node.touched if node is not None else {}
            moved = sum(size for name, size in touched.items() if name in sizes)
            total += moved * max(1, len(kernel.steps))
    return total


def _merged(found: Iterable[Fact]) -> list[Fact]:
    """Facts of one name add up, at the place of the first."""
    merged: dict[tuple[str, str], Fact] = {}
    for fact in found:
        known = merged.get(fact.key)
        if known is None:
            merged[fact.key] = fact
        elif isinstance(known.value, int) and isinstance(fact.value, int):
            merged[fact.key] = replace(known, value=known.value + fact.value)
    return list(merged.values())


def _at(
    place: Location | Place | None, group: str, name: str, value: Value = 1, **more: Any
) -> Fact:
    """A fact at a place, if it has one."""
    file, line = (place.file, place.line) if place is not None else ("", 0)
    return Fact(group, name, value, file=file, line=line, **more)


def failures(summary: Summary) -> Iterator[Fact]:
    """How it ended before its time, and wrong results."""
    failure = summary.failure
    if failure is not None:
        yield Fact("failure", failure.type, 1, title=f"{failure.type}: {failure.message}")
    elif summary.verdict.tone == "failed":
        yield Fact("failure", summary.status, 1, title=summary.verdict.headline)
    if summary.numerics is not None and summary.numerics.within is False:
        yield Fact("failure", WRONG_RESULTS, 1)


def _breaks(summary: Summary) -> Iterator[Fact]:
    for site in summary.breaks:
        place = site.place
        where = f" in {place.function}" if place.function else ""
        text = " ".join(place.text.split())
        name = f"{site.gb or site.type}{where}: {text or site.title}"
        more = f", {plural(site.more_graphs, 'more graph')}" if site.more_graphs else ""
        yield _at(place, "break", name, title=site.title, more=more, times=len(site.records))


def _fallbacks(recording: Recording) -> Iterator[Fact]:
    for record in recording.all(EagerFallback):
        name = f"{record.function}: {_steady(record.reason)}"
        yield _at(record.location, "eager", name, title=fallback_reason(record))


def _recompiles(summary: Summary) -> Iterator[Fact]:
    for cause in summary.recompiles:
        frames = len(cause.frames)
        name, more = _steady(cause.change.text), f" ({plural(frames, 'frame')})"
        shown = {"title": values_text(cause), "more": more, "by": cause.callers or "a call"}
        shown["subject"] = cause.change.name
        yield _at(cause.place, "recompile", name, frames, times=frames, **shown)


def _instructions(recording: Recording) -> Iterator[Fact]:
    """Of the calls that compiled."""
    total = whole_sum(
        call_end.instructions for call_end in recording.all(CallEnd) if call_end.compiled
    )
    if total is not None:
        yield Fact("", "compile instructions", total, "instructions")


def _predicted(recording: Recording) -> Iterator[Fact]:
    """Of the code for a GPU that is not here."""
    kernels = [kernel for kernel in recording.kernels.values() if kernel.predicted]
    if not kernels:
        return
    calls = sum(max(1, len(kernel.steps)) for kernel in kernels)
    yield Fact("", "predicted kernels", calls)
    spilled = whole_sum(
        binary.spill_bytes for binary in recording.all(KernelBinary) if binary.predicted
    )
    if spilled is not None:
        yield Fact("", "predicted spills", spilled, "bytes")


def _sizes(recording: Recording) -> Iterator[Fact]:
    """Sizes that were kept symbolic, and the conditions on them that a line of the program made."""
    names: dict[str, Fact] = {}
    for record in recording.all(Guards):
        for size in record.dynamic:
            if size.name:
                names[size.name] = Fact("size", size.name, "dynamic")
        for guard in record.guards:
            for words, line in zip(guard.values, guard.lines, strict=False):
                if line is not None:
                    names[words] = _at(line, "condition", words)
    yield from (names[name] for name in sorted(names))


def _bypasses(recording: Recording) -> Iterator[Fact]:
    for lookup in recording.all(CacheLookup):
        if lookup.verdict == "bypass":
            yield Fact("bypass", f"{lookup.cache}: {_steady(lookup.missed)}", 1)


def _cudagraphs(recording: Recording) -> Iterator[Fact]:
    """CUDA graphs that are recorded again, or not used, each by its reason; skips also by the text
    of their line."""
    for cost in cudagraph_costs(recording):
        at, name, count = cost.location, _steady(cost.reason), len(cost.records)
        if cost.seconds is not None:
            more = f" ({plural(count, 'time')})" if count > 1 else ""
            yield Fact("cudagraph-again", name, count, more=more)
            continue
        text = " ".join(recording.line(at.file, at.line).split()) if at else ""
        name = f"{name}: {text}" if text else name
        yield _at(at, "cudagraph-skip", name, count, title=cost.reason)


def _settings(recording: Recording) -> Iterator[Fact]:
    for settings in recording.all(TorchSettings):
        for name, value in sorted(settings.changed.items()):
            yield Fact("setting", name, _steady(value))


def _kernels(recording: Recording) -> Iterator[Fact]:
    """Library calls by name and number of inputs, as attention with a mask is another call;
    generated kernels by the floating dtypes in which they compute."""
    for kernel in real_kernels(recording):
        at = next(iter(kernel.locations), None)
        known = recording.nodes(kernel.graph)
        nodes = [known[name] for name in kernel.origins if name in known]
        if kernel.language == "aten":
            name = kernel.label or kernel.name
            if nodes:
                name += f", {plural(max(len(node.inputs) for node in nodes), 'input')}"
            yield _at(at, "library", name, max(1, len(kernel.steps)))
        elif kernel.generated:
            dtypes = {node.value.dtype for node in nodes if node.value is not None}
            floating = sorted(dtype for dtype in dtypes if "float" in dtype or "complex" in dtype)
            if floating:
                yield _at(at, "dtype", listed(floating, len(floating)))


def real_kernels(recording: Recording) -> list[Kernel]:
    """Kernels that run, without predicted ones."""
    return [kernel for kernel in recording.kernels.values() if not kernel.predicted]


def _steady(text: str) -> str:
    return " ".join(without_addresses(without_reprs(text)).split())


def _error(numerics: Numerics | None) -> float | None:
    """None if the sides draw different random numbers: the difference then means nothing."""
    return numerics.max_abs if numerics is not None and numerics.within is not None else None
