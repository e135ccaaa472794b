"""What a change did to compilation, in words: by cost, each effect with its cause.

The order is that of what a reader has to know first. It begins with whether the model still runs
and computes the same, and with what changed in the model itself. Then comes what adds graphs and
compiles (breaks, eager fallbacks, recompiles, sizes), and how the kernels compute. Memory, caches
and the time to compile come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Guards
from tcw.viewers.collected import grouped
from tcw.viewers.labels import kernel_label
from tcw.viewers.recording import Recording
from tcw.viewers.summary.budget import ERROR, FactStanding
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine, matched_line
from tcw.viewers.summary.differences.cache_changes import cache_changes
from tcw.viewers.summary.differences.causes import Causes
from tcw.viewers.summary.differences.decision_changes import unnumbered
from tcw.viewers.summary.differences.fact_changes import FactChanges, FactCount
from tcw.viewers.summary.differences.figures import SettingChange
from tcw.viewers.summary.differences.model_changes import model_changes
from tcw.viewers.summary.differences.operation_changes import OperationChange, operation_words
from tcw.viewers.summary.facts import WRONG_RESULTS, real_kernels
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
    module: str = ""
    """Of an operation: the path of the module that it ran in."""


_KINDS: dict[str, EffectKind] = {
    "failure": "failure", "break": "break", "eager": "fallback", "recompile": "recompile",
    "size": "size", "condition": "size", "cudagraph-skip": "cudagraph",
    "cudagraph-again": "cudagraph", "bypass": "cache",
}  # fmt: skip
"""Group of facts -> the kind of its effects. Facts of other groups are told by the kernels
(`library`, `dtype`), or are causes (`setting`)."""
_TONES: dict[FactStanding, EffectTone] = {"worse": "bad", "different": "neutral", "better": "good"}


def _of_facts(facts: FactChanges, *groups: str) -> Iterator[Effect]:
    return (effect for _, effect in _changed(facts, *groups))


def _changed(facts: FactChanges, *groups: str) -> Iterator[tuple[FactCount, Effect]]:
    """What is new in these groups, then what is gone."""
    for group in groups:
        for count in sorted(facts.changed(group), key=lambda count: bool(count.before)):
            if count.fact.name != WRONG_RESULTS and not ON_STACK.match(count.fact.name):
                change = count.change
                tone = _TONES[change.standing]
                yield count, Effect(_KINDS[group], tone, change.words, line=count.line)


def _of_sizes(alignment: Alignment, facts: FactChanges, group: str) -> Iterator[Effect]:
    """Sizes that are specialised now, or recompiles for their values, with the line that made torch
    treat them as constants, if there is one."""
    places = {
        size.name: matched_line(size.location)
        for guards in alignment.run.all(Guards)
        for size in guards.specialised
    }
    for count, effect in _changed(facts, group):
        place = places.get(count.fact.subject or count.fact.name) if effect.tone == "bad" else None
        yield replace(effect, line=place or effect.line)


def effects_of(difference: Difference, alignment: Alignment) -> tuple[Effect, ...]:
    """All effects, the most important first. Empty if only times differ."""
    facts = difference.facts
    sizes = sorted(_of_sizes(alignment, facts, "size"), key=lambda fact: fact.tone != "bad")
    lost = [size for size in sizes if size.tone == "bad"]
    found = [
        *_of_facts(facts, "break", "eager"),
        *lost,
        *_of_sizes(alignment, facts, "recompile"),
        *(_backwards(alignment) if all(facts.complete) else ()),
        *sizes[len(lost) :],
        *_of_facts(facts, "condition"),
        *_graphs(facts),
    ]
    cut = not all(facts.complete) or any(one.kind in OTHER_GRAPHS for one in found)
    model = model_changes(alignment, facts, cut)
    wrong = [*_of_facts(facts, "failure"), *_numerics(facts)]
    found = [*wrong, *_operations(model), *found]
    if not cut:
        found += _larger_errors(facts)
        found += _engines(difference)
        found += _fusions(difference)
        found += [*_kernels(difference), *_memory(difference)]
    found += _of_facts(facts, "cudagraph-skip", "cudagraph-again")
    found += cache_effects(alignment, facts)
    of_compile = sorted(found, key=lambda one: one.kind == "operation")
    lines = [one.line for one in of_compile if one.line is not None]
    causes = Causes(
        alignment,
        [setting for setting in difference.settings if setting.name not in _NOT_CAUSES],
        versions_of(alignment.base, alignment.run),
        lines,
    )
    return tuple(
        replace(
            effect,
            count=count,
            place=alignment.words(effect.line) if effect.line else "",
            cause=effect.cause or _cause(effect, causes),
        )
        for effect, count in _grouped(found)
    )


def _cause(effect: Effect, causes: Causes) -> str:
    """What caches serve needs no cause besides the run before."""
    if effect.kind == "cache" and effect.tone == "good":
        return ""
    return causes.of(*([effect.line] if effect.line else []), module=effect.module)


def _grouped(effects: Iterable[Effect]) -> Iterator[tuple[Effect, int]]:
    """Effects that differ only in torch's numbers (`add_3`): the first of them, and how many."""
    groups = grouped(
        ((effect.kind, effect.line, unnumbered(effect.words)), effect) for effect in effects
    )
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


def _numerics(facts: FactChanges) -> Iterator[Effect]:
    """Whether results are right, where both sides were compared with eager."""
    one, other = facts.before.numerics, facts.after.numerics
    if one is None or other is None or None in (one.within, other.within):
        return
    if one.within != other.within:
        words = "results are right again" if other.within else "results are wrong"
        yield Effect("numerics", "good" if other.within else "bad", words)


def _larger_errors(facts: FactChanges) -> Iterator[Effect]:
    """Of results that are right, or wrong, on both sides."""
    one, other = facts.before.numerics, facts.after.numerics
    if one is None or other is None or one.within != other.within:
        return
    errors = (one.max_abs or 0.0, other.max_abs or 0.0)
    if not ERROR.covers(min(errors), max(errors)):
        tone: EffectTone = "bad" if errors[1] > errors[0] else "good"
        words = f"largest error {error_text(errors[0])} → {error_text(errors[1])}"
        yield Effect("numerics", tone, words)


def _backwards(alignment: Alignment) -> Iterator[Effect]:
    """Whether only one side compiled a backward. torch does so before the first backward pass if
    the forward saves symbolic sizes; else the pass itself makes it compile."""

    def kernels(recording: Recording) -> int:
        graphs = recording.graphs.values()
        backwards = {base_graph(graph.id) for graph in graphs if graph.kind == "backward"}
        return sum(base_graph(kernel.graph) in backwards for kernel in real_kernels(recording))

    one, other = kernels(alignment.base), kernels(alignment.run)
    if bool(one) != bool(other):
        how = "is compiled too" if other else "is no longer compiled"
        words = f"the backward {how}: {plural(one or other, 'kernel')}"
        yield Effect("backward", "neutral", words)


def _graphs(facts: FactChanges) -> Iterator[Effect]:
    before, after = facts.before.graphs, facts.after.graphs
    if before != after and all(facts.complete):
        # without any graph, all of it runs eagerly
        tone: EffectTone = "bad" if after > before or not after else "good"
        yield Effect("graph", tone, f"graphs {before} → {after}")


def _operations(changes: Iterable[OperationChange]) -> Iterator[Effect]:
    for change in changes:
        words = operation_words(change)
        yield Effect("operation", "neutral", words, change.line, module=change.module)


def _engines(difference: Difference) -> Iterator[Effect]:
    """What another engine made of the same graphs."""
    base, run = difference.engines
    if base != run:
        counts = [
            f"{figure.what} {figure.before:,.0f} → {figure.after:,.0f}"
            for figure in difference.figures
            if figure.what in ("kernels", "loop nests") and figure.changed
            if figure.before is not None and figure.after is not None
        ]
        words = f"compiled by {run} instead of {base}"
        yield Effect("kernel", "neutral", ": ".join(filter(None, (words, ", ".join(counts)))))


_FUSIONS: tuple[tuple[str, EffectTone, str], ...] = (
    ("vetoed", "neutral", "vetoed: {}"),
    ("forced", "neutral", "forced: {}"),
    ("gone", "bad", "no longer fused: {}"),
    ("new", "good", "fused now: {}"),
)


def _fusions(difference: Difference) -> Iterator[Effect]:
    """Fusions that an override asked for, then those lost, then those gained."""
    for change, tone, words in _FUSIONS:
        for decision_change in difference.decisions.changes:
            if decision_change.kind == "fuse" and decision_change.change == change:
                reason = (
                    f" ({decision_change.reason})"
                    if change == "gone" and decision_change.reason
                    else ""
                )
                yield Effect("fusion", tone, words.format(decision_change.subject) + reason)


def _served(difference: Difference) -> set[str]:
    """Graphs whose kernels cannot be compared: a cache served them on one side, so what they
    compute is not recorded there."""
    found: list[set[str]] = []
    for side in (difference.base, difference.run):
        kernels = side.kernels.values()
        found.append({kernel.graph for kernel in kernels if not (kernel.nodes or kernel.origins)})
    return found[0] ^ found[1]


_KERNELS: dict[str, tuple[EffectTone, str]] = {
    "new": ("bad", "a new kernel: {after}"),
    "gone": ("good", "one kernel fewer: {before}"),
    "split": ("bad", "a kernel became {count}: {after}"),
    "merged": ("good", "{counted} kernels became one: {after}"),
    "changed": ("neutral", "other code: {after}"),
    "regrouped": ("neutral", "other code: {after}"),
}


def _kernels(difference: Difference) -> Iterator[Effect]:
    served = _served(difference)
    across = len(set(difference.engines)) > 1
    for changed_kernel in difference.changed_kernels:
        if any(
            kernel.graph.partition("@")[0] in served
            for kernel in (*changed_kernel.before, *changed_kernel.after)
        ):
            continue
        tone, words = _KERNELS[changed_kernel.kind]
        if across and tone == "neutral":
            continue  # another engine's code is another one throughout
        before, after = (
            listed([kernel_label(kernel) for kernel in side], _NAMED)
            for side in (changed_kernel.before, changed_kernel.after)
        )
        counts = {"counted": len(changed_kernel.before), "count": len(changed_kernel.after)}
        yield Effect("kernel", tone, words.format(before=before, after=after, **counts))


def _memory(difference: Difference) -> Iterator[Effect]:
    for figure in difference.figures:
        if (
            figure.unit == "bytes"
            and figure.changed
            and figure.before is not None
            and figure.after is not None
        ):
            sizes = bytes_change(int(figure.before), int(figure.after))
            tone: EffectTone = "bad" if figure.after > figure.before else "good"
            yield Effect("memory", tone, f"{figure.what} {sizes}")


def cache_effects(alignment: Alignment, facts: FactChanges | None = None) -> Iterator[Effect]:
    """What missed, each with its own cause: what of the key changed; then caches that are bypassed;
    then what is served now."""
    changes = cache_changes(alignment)
    facts = facts or FactChanges(alignment)
    for better in (False, True):
        for change in changes:
            if change.better == better:
                tone: EffectTone = "good" if better else "bad"
                yield Effect("cache", tone, change.words, change.line, cause=change.because)
        if not better:
            yield from _of_facts(facts, "bypass")
