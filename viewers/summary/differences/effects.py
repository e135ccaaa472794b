"""What a change did to compilation, in words: by cost, each effect with its cause.

The order is that of what a reader has to know first. It begins with whether the model still runs
and computes the same. Then comes what adds graphs and compiles (breaks, eager fallbacks,
recompiles, sizes), and what the kernels compute and how. Memory, caches and the time to compile
come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import EagerFallback, Guards, Kernel
from tcw.viewers.collected import grouped
from tcw.viewers.labels import kernel_label
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.budget import ERROR
from tcw.viewers.summary.cudagraphs import CudagraphCost, cudagraph_costs
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine, matched_line
from tcw.viewers.summary.differences.caches import cache_changes
from tcw.viewers.summary.differences.causes import Causes
from tcw.viewers.summary.differences.decisions import unnumbered
from tcw.viewers.summary.differences.figures import SettingChange
from tcw.viewers.summary.differences.modules import by_module, in_every_layer, inputs_together
from tcw.viewers.summary.differences.operation_words import operation_words
from tcw.viewers.summary.differences.operations import OperationChange, operation_changes
from tcw.viewers.summary.facts import real_kernels
from tcw.viewers.summary.findings import fallback_reason, values_text
from tcw.viewers.summary.on_stack import ON_STACK
from tcw.viewers.words import bytes_change, error_text, listed, plural

if TYPE_CHECKING:
    from tcw.viewers.summary.differences import Difference

EffectKind = Literal[
    "failure", "numerics", "break", "fallback", "recompile", "backward", "size", "graph",
    "operation", "fusion", "kernel", "memory", "cudagraph", "cache",
]  # fmt: skip
EffectTone = Literal["bad", "good", "neutral"]

OTHER_GRAPHS = ("failure", "break", "fallback", "graph")
"""Kinds of effects after which graphs are cut elsewhere, so that all that is in them differs."""

_NAMED = 3
"""Maximum number of kernels named in one effect."""


@dataclass(frozen=True)
class Effect:
    """One thing that the run does differently."""

    kind: EffectKind
    tone: EffectTone
    words: str
    line: MatchedLine | None = None
    """The run's line, or the base's if it is gone."""
    place: str = ""
    """The line in words: `gpt.py:41`."""
    count: int = 1
    """How often, in as many graphs, layers or kernels."""
    cause: str = ""
    """`gpt.py:41 is new: print(x)`, `mode default → max-autotune`; "" if it was not found."""


def effects_of(difference: Difference, alignment: Alignment) -> tuple[Effect, ...]:
    """All effects, the most important first. Empty if only times differ."""
    before, after = summarise(alignment.base), summarise(alignment.run)
    operations = operation_changes(alignment)
    found = [
        *_failures(before, after),
        *_numerics(before, after),
        *_breaks(before, after, alignment),
        *_fallbacks(alignment),
        *_recompiles(before, after, alignment),
        *_backwards(alignment),
        *_sizes(alignment),
        *_graphs(before, after),
    ]
    if any(one.kind in OTHER_GRAPHS for one in found):
        operations = ()  # graphs that were cut elsewhere have other kernels throughout
    else:
        changes = tuple(in_every_layer(by_module(operations, alignment)))
        # where operations only went, that is what happened to the fusions too
        first = [one for one in changes if one.telling or all(one.gone for one in changes)]
        first.sort(key=lambda one: one.kind.startswith("many"))
        found += _operations(inputs_together(first))
        found += _larger_errors(before, after)
        found += _engines(difference)
        found += _fusions(difference)
        found += _operations(one for one in changes if one not in first)
        found += [*_kernels(difference), *_memory(difference)]
    found += [*_cudagraphs(alignment), *cache_effects(alignment)]
    lines = [one.line for one in found if one.line is not None]
    lines += [one.line for one in operations if one.line is not None]
    causes = Causes(
        alignment,
        [one for one in difference.settings if one.name not in _NOT_CAUSES],
        versions_of(alignment.base, alignment.run),
        lines,
    )
    return tuple(
        replace(
            one,
            count=count,
            place=alignment.words(one.line) if one.line else "",
            cause=one.cause or _cause(one, causes),
        )
        for one, count in _grouped(found)
    )


def _cause(effect: Effect, causes: Causes) -> str:
    """What caches serve needs no cause besides the run before."""
    if effect.kind == "cache" and effect.tone == "good":
        return ""
    return causes.of(*([effect.line] if effect.line else []))


def _grouped(effects: Iterable[Effect]) -> Iterator[tuple[Effect, int]]:
    """Effects that differ only in torch's numbers (`add_3`): the first of them, and how many."""
    groups = grouped(((one.kind, one.line, unnumbered(one.words)), one) for one in effects)
    return ((group[0], len(group)) for group in groups.values())


_NOT_CAUSES = ("file", "timeout", "record", "defaults from")


def versions_of(base: Recording, run: Recording) -> tuple[SettingChange, ...]:
    """Versions of torch, Triton, the compiler and Python that differ."""
    one, other = base.environment, run.environment
    pairs = [
        (name, getattr(one, name, ""), getattr(other, name, ""))
        for name in ("torch", "triton", "compiler", "vector", "threads", "gpu")
    ]
    pythons = [recording.start.python if recording.start else "" for recording in (base, run)]
    pairs.append(("python", pythons[0], pythons[1]))
    return tuple(SettingChange(n, str(a), str(b)) for n, a, b in pairs if a != b and a and b)


def _failures(before: Summary, after: Summary) -> Iterator[Effect]:
    one, other = before.failure, after.failure
    if other is not None and one is None:
        yield Effect("failure", "bad", f"it fails: {other.type}: {other.message}")
    elif one is not None and other is None:
        yield Effect("failure", "good", f"it no longer fails ({one.type})")


def _numerics(before: Summary, after: Summary) -> Iterator[Effect]:
    one, other = before.numerics, after.numerics
    if one is None or other is None:
        return
    if one.within != other.within and None not in (one.within, other.within):
        words = "results are wrong" if other.within is False else "results are right again"
        yield Effect("numerics", "good" if other.within else "bad", words)


def _larger_errors(before: Summary, after: Summary) -> Iterator[Effect]:
    """Of results that are right, or wrong, on both sides."""
    one, other = before.numerics, after.numerics
    if one is None or other is None or one.within != other.within:
        return
    errors = (one.max_abs or 0.0, other.max_abs or 0.0)
    if not ERROR.covers(min(errors), max(errors)):
        tone: EffectTone = "bad" if errors[1] > errors[0] else "good"
        words = f"largest error {error_text(errors[0])} → {error_text(errors[1])}"
        yield Effect("numerics", tone, words)


def _breaks(before: Summary, after: Summary, alignment: Alignment) -> Iterator[Effect]:
    old = {
        (alignment.line(one.place.file, one.place.line), one.gb or one.type): one
        for one in before.breaks
    }
    new = {
        (MatchedLine(one.place.file, one.place.line), one.gb or one.type): one
        for one in after.breaks
    }
    for (line, type), site in new.items():
        if (line, type) not in old:
            extra = f", {plural(site.more_graphs, 'more graph')}" if site.more_graphs else ""
            yield Effect("break", "bad", f"a new graph break: {site.title}{extra}", line=line)
    for (line, type), site in old.items():
        if (line, type) not in new:
            yield Effect("break", "good", f"a graph break gone: {site.title}", line=line)


def _fallbacks(alignment: Alignment) -> Iterator[Effect]:
    def keyed(recording: Recording) -> dict[tuple[str, str], EagerFallback]:
        return {(one.kind, one.function): one for one in recording.all(EagerFallback)}

    old, new = keyed(alignment.base), keyed(alignment.run)
    for key, one in new.items():
        if key not in old:
            line = matched_line(one.location)
            yield Effect("fallback", "bad", f"runs eagerly now: {fallback_reason(one)}", line=line)
    for key, one in old.items():
        if key not in new:
            line = alignment.place(one.location)
            yield Effect(
                "fallback", "good", f"no longer runs eagerly: {fallback_reason(one)}", line=line
            )


def _recompiles(before: Summary, after: Summary, alignment: Alignment) -> Iterator[Effect]:
    old = {values_text(one): one for one in before.recompiles}
    new = {values_text(one): one for one in after.recompiles}
    for text, cause in new.items():
        if text not in old:
            frames = plural(len(cause.frames), "frame")
            line = MatchedLine(cause.place.file, cause.place.line) if cause.place else None
            yield Effect("recompile", "bad", f"a new recompile of {frames}: {text}", line=line)
    for text, cause in old.items():
        if text not in new:
            line = alignment.line(cause.place.file, cause.place.line) if cause.place else None
            yield Effect("recompile", "good", f"no longer recompiles: {text}", line=line)


def _backwards(alignment: Alignment) -> Iterator[Effect]:
    """Whether only one side compiled a backward. torch does so before the first backward pass if
    the forward saves symbolic sizes; else the pass itself makes it compile."""

    def kernels(recording: Recording) -> int:
        graphs = recording.graphs.values()
        backwards = {base_graph(one.id) for one in graphs if one.kind == "backward"}
        return sum(base_graph(one.graph) in backwards for one in real_kernels(recording))

    one, other = kernels(alignment.base), kernels(alignment.run)
    if other and not one:
        words = f"the backward is compiled too: {plural(other, 'kernel')}"
        yield Effect("backward", "neutral", words)
    elif one and not other:
        words = f"the backward is no longer compiled: {plural(one, 'kernel')}"
        yield Effect("backward", "neutral", words)


def _sizes(alignment: Alignment) -> Iterator[Effect]:
    def keyed(recording: Recording) -> set[str]:
        """Without what a resumed frame finds on its stack, which goes with the graph break."""
        names = {size.name for one in recording.all(Guards) for size in one.dynamic if size.name}
        return {name for name in names if not ON_STACK.match(name)}

    old, new = keyed(alignment.base), keyed(alignment.run)
    for name in sorted(old - new):
        yield Effect("size", "bad", f"was dynamic and is now specialised: {name}")
    for name in sorted(new - old):
        yield Effect("size", "neutral", f"dynamic now: {name}")


def _graphs(before: Summary, after: Summary) -> Iterator[Effect]:
    if before.graphs != after.graphs:
        # without any graph, all of it runs eagerly
        worse = after.graphs > before.graphs or not after.graphs
        tone: EffectTone = "bad" if worse else "good"
        yield Effect("graph", tone, f"graphs {before.graphs} → {after.graphs}")


def _operations(changes: Iterable[OperationChange]) -> Iterator[Effect]:
    for one in changes:
        yield Effect("operation", "neutral", operation_words(one), line=one.line)


def _engines(difference: Difference) -> Iterator[Effect]:
    """What another engine made of the same graphs."""
    base, run = difference.engines
    if base != run:
        counts = [
            f"{one.what} {one.before:,.0f} → {one.after:,.0f}"
            for one in difference.figures
            if one.what in ("kernels", "loop nests") and one.changed
            if one.before is not None and one.after is not None
        ]
        words = f"compiled by {run} instead of {base}"
        yield Effect("kernel", "neutral", ": ".join(filter(None, (words, ", ".join(counts)))))


def _fusions(difference: Difference) -> Iterator[Effect]:
    """Fusions that an override asked for, then those lost, then those gained."""
    changes = [one for one in difference.decisions.changes if one.kind == "fuse"]
    for one in changes:
        if one.change in ("vetoed", "forced"):
            yield Effect("fusion", "neutral", f"{one.change}: {one.subject}")
    for one in changes:
        if one.change == "gone":
            words = f"no longer fused: {one.subject}"
            yield Effect("fusion", "bad", words + (f" ({one.reason})" if one.reason else ""))
    for one in changes:
        if one.change == "new":
            yield Effect("fusion", "good", f"fused now: {one.subject}")


def _served(difference: Difference) -> set[str]:
    """Graphs whose kernels cannot be compared: a cache served them on one side, so what they
    compute is not recorded there."""
    found: list[set[str]] = []
    for side in (difference.base, difference.run):
        kernels = side.kernels.values()
        found.append({one.graph for one in kernels if not (one.nodes or one.origins)})
    return found[0] ^ found[1]


def _kernels(difference: Difference) -> Iterator[Effect]:
    def called(kernels: tuple[Kernel, ...]) -> str:
        return listed([kernel_label(kernel) for kernel in kernels], _NAMED)

    served = _served(difference)
    across = len(set(difference.engines)) > 1
    for one in difference.changed_kernels:
        if any(kernel.graph.partition("@")[0] in served for kernel in (*one.before, *one.after)):
            continue
        if one.kind == "new":
            yield Effect("kernel", "bad", f"a new kernel: {called(one.after)}")
        elif one.kind == "gone":
            yield Effect("kernel", "good", f"one kernel fewer: {called(one.before)}")
        elif one.kind == "split":
            words = f"a kernel became {len(one.after)}: {called(one.after)}"
            yield Effect("kernel", "bad", words)
        elif one.kind == "merged":
            words = f"{len(one.before)} kernels became one: {called(one.after)}"
            yield Effect("kernel", "good", words)
        elif not across:  # another engine's code is another one throughout
            yield Effect("kernel", "neutral", f"other code: {called(one.after)}")


def _memory(difference: Difference) -> Iterator[Effect]:
    for one in difference.figures:
        if one.unit == "bytes" and one.changed and None not in (one.before, one.after):
            assert one.before is not None
            assert one.after is not None
            sizes = bytes_change(int(one.before), int(one.after))
            tone: EffectTone = "bad" if one.after > one.before else "good"
            yield Effect("memory", tone, f"{one.what} {sizes}")


def _cudagraphs(alignment: Alignment) -> Iterator[Effect]:
    """CUDA graphs that one side does not use, or records again, by reason; the line is the run's,
    or the base's."""

    def costs(recording: Recording) -> dict[tuple[bool, str], CudagraphCost]:
        found: dict[tuple[bool, str], CudagraphCost] = {}
        for one in cudagraph_costs(recording):
            found.setdefault((one.seconds is None, one.reason), one)
        return found

    base, run = costs(alignment.base), costs(alignment.run)
    for (skipped, reason), one in run.items():
        if (skipped, reason) not in base:
            at = one.location
            line = MatchedLine(at.file, at.line) if at else None
            words = f"a CUDA graph is skipped: {reason}" if skipped else one.title
            yield Effect("cudagraph", "bad", words, line)
    for skipped, reason in base:
        if (skipped, reason) not in run:
            what = "skipped" if skipped else "recorded again"
            yield Effect("cudagraph", "good", f"CUDA graphs are no longer {what}: {reason}")


def cache_effects(alignment: Alignment) -> Iterator[Effect]:
    """Each with its own cause: what of the key changed."""
    for one in cache_changes(alignment):
        tone: EffectTone = "good" if one.better else "bad"
        yield Effect("cache", tone, one.words, one.line, cause=one.because)
